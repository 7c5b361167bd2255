// Command lab is the accuracy lab: it runs real programs on the virtual PMU,
// which gives recordings and the exact truth of the same run, converts the
// recordings with every method, scores the results with package accuracy and
// writes the tables of docs/accuracy.md.
//
//	go run ./lab            # the whole table: make accuracy
//	go run ./lab -quick     # a slice of it: make accuracy-quick
//	go run ./lab -live      # programs run natively: make accuracy-live
//
// It works in a folder of its own (-dir), which it fills with the programs'
// inputs, and installs nothing itself: the Makefile does.
package main
