package task

import "github.com/rekastream/reka/internal/work"

// Worker runs jobs one after the other, so that no task waits for a disk or a
// broker: flushes of committed rows, purges of loop topics. One goroutine,
// which ends with Close.
type Worker struct {
	box  *work.Mailbox[func()]
	done *work.Mailbox[struct{}] // closed when the goroutine has ended
}

// NewWorker starts a worker.
func NewWorker(c work.Counter) *Worker {
	w := &Worker{box: work.NewMailbox[func()](c), done: work.NewMailbox[struct{}](c)}
	work.Go(c, w.loop) // ends with Close, which waits
	return w
}

func (w *Worker) loop() {
	defer w.done.Close()
	for {
		jobs, ok := w.box.Take()
		if !ok {
			return
		}
		for i, job := range jobs {
			jobs[i] = nil
			job()
		}
	}
}

// Do runs job some time, after those given before. It reports false if the
// worker is closed.
func (w *Worker) Do(job func()) bool { return w.box.Put(job) }

// Close ends the worker after the jobs that it was given and waits for it.
func (w *Worker) Close() {
	w.box.Close()
	w.done.Take() // and not a channel: who waits for a disk does not run
}
