package realkafka

// Launch starts a cluster for a program that is not a test, with its data
// below dir. The caller closes it and removes dir.
func Launch(dir string, cfg Config) (*Cluster, error) { return start(dir, cfg) }
