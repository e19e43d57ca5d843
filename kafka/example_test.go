package kafka_test

import (
	"log"

	"github.com/IBM/sarama"

	"github.com/rekastream/reka/kafka"
)

// Everything that concerns connections comes from a sarama configuration.
func ExampleNewClient() {
	cfg := sarama.NewConfig()
	cfg.ClientID = "orders"
	cfg.Net.TLS.Enable = true
	cfg.Net.SASL.Enable = true
	cfg.Net.SASL.User, cfg.Net.SASL.Password = "orders", "secret"

	client, err := kafka.NewClient([]string{"broker-1:9093", "broker-2:9093"}, kafka.WithSarama(cfg))
	if err != nil {
		log.Fatal(err)
	}
	log.Print(client.Partitioner()) // emitters, processors and views are built on the client
}
