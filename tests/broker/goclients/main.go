// Hands records to a Go client, which sends them to a broker.
//
//	goclients CLIENT VERSION BOOTSTRAP <jobs.json
//
// CLIENT is franz-go or sarama, VERSION the Kafka release that it takes the broker for. A job is a
// topic, a codec and batches of records; each batch is sent in one request.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

type header struct {
	Key   string
	Value []byte
}

type record struct {
	Timestamp  int64
	Key, Value []byte
	Headers    []header
}

type job struct {
	Topic, Codec string
	Batches      [][]record
}

func main() {
	client, version, bootstrap := os.Args[1], os.Args[2], os.Args[3]
	var jobs []job
	check(json.NewDecoder(os.Stdin).Decode(&jobs))
	produce := map[string]func(job, string, string){"franz-go": franz, "sarama": saramas}[client]
	for _, j := range jobs {
		produce(j, version, bootstrap)
	}
}

func franz(j job, version, bootstrap string) {
	codec := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}[j.Codec]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.MaxVersions(kversion.FromString(version)),
		kgo.ProducerBatchCompression(codec),
		kgo.DisableIdempotentWrite(), // producer ids differ from one run to the next
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ManualFlushing(), // a batch is sent when it is whole
	)
	check(err)
	defer client.Close()
	for _, batch := range j.Batches {
		for _, r := range batch {
			sent := &kgo.Record{
				Topic: j.Topic, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp),
			}
			for _, h := range r.Headers {
				sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			}
			client.Produce(context.Background(), sent, func(_ *kgo.Record, err error) { check(err) })
		}
		check(client.Flush(context.Background()))
	}
}

func saramas(j job, version, bootstrap string) {
	config := sarama.NewConfig()
	check(config.Producer.Compression.UnmarshalText([]byte(j.Codec)))
	parsed, err := sarama.ParseKafkaVersion(version)
	check(err)
	config.Version = parsed
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	// A batch is sent when it is whole, and otherwise never.
	config.Producer.Flush.Frequency = time.Hour
	for _, batch := range j.Batches {
		config.Producer.Flush.Messages = len(batch)
		client, err := sarama.NewSyncProducer([]string{bootstrap}, config)
		check(err)
		var sent []*sarama.ProducerMessage
		for _, r := range batch {
			message := &sarama.ProducerMessage{Topic: j.Topic, Timestamp: time.UnixMilli(r.Timestamp)}
			if r.Key != nil {
				message.Key = sarama.ByteEncoder(r.Key)
			}
			if r.Value != nil {
				message.Value = sarama.ByteEncoder(r.Value)
			}
			for _, h := range r.Headers {
				message.Headers = append(
					message.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value},
				)
			}
			sent = append(sent, message)
		}
		check(client.SendMessages(sent))
		check(client.Close())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(fmt.Errorf("goclients: %w", err))
	}
}
