// Package realkafka starts and stops real Apache Kafka for tests: one or
// three KRaft nodes on loopback and free ports, as child processes. The jars
// come through Maven, once, into the user's cache directory.
//
// Without Java or Maven tests skip and say why; with CI=true in the
// environment they fail instead, so that a pipeline cannot pass by running
// nothing.
//
// A test binary shares one node (Shared), since starting one takes seconds;
// tests keep apart by the names of their topics and groups. A test that stops
// or secures brokers starts its own (Start).
package realkafka
