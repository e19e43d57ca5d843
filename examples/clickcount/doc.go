// Command clickcount is the guided tour of Reka in one program: it emits the
// clicks of users, counts them in a processor, and answers from a view how
// often a user has clicked, while a picture of it all is drawn.
//
// Half way it kills its own processor with SIGKILL and brings it back, and at
// the end it compares every count with the truth: each click counted once. It needs nothing but Go: the
// Kafka it runs on is embedded, unless --brokers names another one.
//
//	go run ./clickcount
//	curl http://127.0.0.1:8080/users/ada
//	curl http://127.0.0.1:8080/top
//
// The files, in the order of a click's way: clicker.go emits it, counter.go
// counts it (in a process of its own, which child.go starts and kills),
// ranking.go and api.go read the counts, truth.go knows what they must be,
// picture.go and screen.go show it. demo.go tells the story.
package main
