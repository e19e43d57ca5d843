package processor_test

import "testing"

func TestTryScenes(t *testing.T) {
	for i := range weak {
		f := &weak[i]
		if i != 9 && i != 10 && i != 11 && i != 5 { continue }
		for name, scene := range scenes {
			tr := &trial{TB: t}
			if tr.run(func() { x := newExact(tr, sceneSize(name)); x.fault = f; x.play(scene) }); tr.Failed() {
				t.Logf("%s | %s | %.150s", f.name, name, tr.all[0])
			}
		}
	}
}
