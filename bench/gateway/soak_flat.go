package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const sampleEvery = 2 * time.Second

// bounded is a measure that must not grow, from the first sample to the last, by more than a share of its median plus
// an allowance for chance.
type bounded struct {
	name, metric  string
	unit          float64
	share, chance float64
}

func measures() []bounded {
	return []bounded{
		{"memory, MB", "process_resident_memory_bytes", 1 << 20, 0.1, 8},
		{"descriptors", "process_open_fds", 1, 0.1, 8},
		{"goroutines", "go_goroutines", 1, 0.1, 16},
	}
}

// sample is the state of a process at one time.
type sample struct {
	at     time.Duration
	values []float64 // in the order of measures
}

// readSample reads the metrics of a gateway.
func readSample(ctx context.Context, addr string) (sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
	if err != nil {
		return sample{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = response.Body.Close() }()
	all := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), " "); found {
			all[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	s := sample{}
	for _, m := range measures() {
		v, found := all[m.metric]
		if !found {
			return sample{}, errors.Join(fmt.Errorf("reading metrics: no %s", m.metric), lines.Err())
		}
		s.values = append(s.values, v/m.unit)
	}
	return s, nil
}

// slopeOf returns by how much y grows with x: the median of the slopes between all pairs (Theil–Sen), so that a
// temporary peak during a fault does not count as growth.
func slopeOf(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	return medianOf(slopes)
}

// minSamples is the number of samples needed to detect growth.
const minSamples = 20

// reportFlat writes rows about what must not grow. The error names what does.
func reportFlat(out io.Writer, samples []sample) error {
	if len(samples) < minSamples {
		return fmt.Errorf("%d samples are too few to tell whether anything grows", len(samples))
	}
	var x []float64
	for _, s := range samples {
		x = append(x, s.at.Hours())
	}
	var err error
	for i, m := range measures() {
		var y []float64
		for _, s := range samples {
			y = append(y, s.values[i])
		}
		slope, median := slopeOf(x, y), medianOf(y)
		grown, bound := slope*(x[len(x)-1]-x[0]), m.share*median+m.chance
		fmt.Fprintf(out, "| %s | median %.0f, %+.1f an hour; %+.1f in %d samples, bound %.1f |\n", m.name, median, slope,
			grown, len(samples), bound)
		if grown > bound {
			err = errors.Join(err, fmt.Errorf("%s grow by %.1f, more than %.1f", m.name, grown, bound))
		}
	}
	return err
}
