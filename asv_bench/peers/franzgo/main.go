// Reads a segment that is already in memory, once for each line on stdin, and answers with
// nanoseconds and records. As franz-go's consumer does with what a broker sends: its own parser
// checks CRCs and makes a Record of each, of as many whole batches at a time as a fetch of 1 MiB
// from a partition, its default, has.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	fetchBytes     = 1 << 20
	sizeAt, sizeIs = 8, 12 // a batch's length, and what comes before the bytes that it counts
)

// What happens to be kept of each pass, lest the compiler leave the work out.
var sink int64

func main() {
	segment, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for lines.Scan() {
		start := time.Now()
		records := read(segment)
		fmt.Println(time.Since(start).Nanoseconds(), records)
	}
}

func read(segment []byte) (count int) {
	decompressor := kgo.DefaultDecompressor()
	for len(segment) > 0 {
		end := 0
		for end < len(segment) {
			size := sizeIs + int(binary.BigEndian.Uint32(segment[end+sizeAt:]))
			if end > 0 && end+size > fetchBytes {
				break
			}
			end += size
		}
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches = segment[:end]
		found, _ := kgo.ProcessFetchPartition(
			kgo.ProcessFetchPartitionOpts{}, &partition, decompressor, nil)
		if found.Err != nil {
			log.Fatal(found.Err)
		}
		for _, record := range found.Records {
			sink += record.Offset + record.Timestamp.UnixMilli()
			sink += int64(len(record.Key) + len(record.Value))
		}
		count += len(found.Records)
		segment = segment[end:]
	}
	return count
}
