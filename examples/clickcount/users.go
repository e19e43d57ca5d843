package main

import (
	"fmt"
	"math/rand/v2"
)

const userCount = 480

var firstNames = []string{
	"ada", "alan", "barbara", "claude", "donald", "edsger", "frances", "grace", "hedy", "ivan", "joan", "kathleen",
	"leslie", "margaret", "niklaus", "ole", "pavel", "radia", "sophie", "tony", "ursula", "vint", "whitfield", "yukihiro",
}

// users draws who clicks next: few of them often, most of them seldom.
type users struct{ zipf *rand.Zipf }

func newUsers() *users {
	source := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return &users{rand.NewZipf(source, 1.1, 8, userCount-1)}
}

func (u *users) next() string { return userName(int(u.zipf.Uint64())) }

func userName(i int) string {
	name := firstNames[i%len(firstNames)]
	if n := i / len(firstNames); n > 0 {
		name = fmt.Sprintf("%s-%d", name, n+1)
	}
	return name
}
