package main

import (
	"testing"
	"time"
)

const second = 1000 * time.Millisecond

var begin = time.Unix(1_000_000, 0)

func TestQuietLastsWhileNothingHappens(t *testing.T) {
	var q quiet
	if lasted := q.observe(begin, 100, begin); lasted != 0 {
		t.Errorf("the first sample begins a period, not %s", lasted)
	}
	if lasted := q.observe(begin.Add(3*second), 100+idleTicks, begin); lasted != 3*second {
		t.Errorf("3 s of quiet are %s", lasted)
	}
}

func TestWorkThatWasDelayedBeginsAnotherPeriod(t *testing.T) {
	var q quiet
	q.observe(begin, 100, begin)
	q.observe(begin.Add(2*second), 100, begin)
	if lasted := q.observe(begin.Add(2500*time.Millisecond), 110, begin); lasted != 0 {
		t.Errorf("the operator worked, and yet %s are quiet", lasted)
	}
	if lasted := q.observe(begin.Add(4*second), 110, begin); lasted != 1500*time.Millisecond {
		t.Errorf("1.5 s after the work, %s are quiet", lasted)
	}
}

func TestALittleCPUAllTheTimeIsNotQuiet(t *testing.T) {
	var q quiet
	longest := time.Duration(0)
	for i := range 100 { // one tick each 100 ms: a tenth of a core
		longest = max(longest, q.observe(begin.Add(time.Duration(i)*100*time.Millisecond), int64(i), begin))
	}
	if longest >= second {
		t.Errorf("%s of them are quiet", longest)
	}
}

func TestAChangeThatIsSeenBeginsAnotherPeriod(t *testing.T) {
	var q quiet
	q.observe(begin, 100, begin)
	if lasted := q.observe(begin.Add(2*second), 100, begin.Add(second)); lasted != 0 {
		t.Errorf("an object changed, and yet %s are quiet", lasted)
	}
}
