// Command differential prints docs/differences.md: what Berth does otherwise than runc and crun,
// and why. Its tests find it out.
//
// They run the same configs and the same commands under Berth, runc and crun, today's releases of
// them (runc/build and build/scripts/fetch-crun get them), and compare all that a process inside
// can see (test/inside's "report"), and all that its caller and the host can. A difference that no
// row of table.txt names is a failure, and in a whole run so is a row that matches nothing any
// more. runc is the measure, because clients were written for it; where there is none, crun is. Of
// several lines together crun is asked only what runc leaves unexplained.
//
//	go test ./test/differential                 a part by a seed, which it prints, for some seconds
//	BERTH_DIFFERENTIAL_SEED=7 go test …         the part by that seed, the same on each machine; 0 for one by chance
//	make differential                           all here, a share in a guest, and docs/differences.md (test/differential/whole)
//	BERTH_DIFFERENTIAL_LINES='/process/cwd "/x"' BERTH_DIFFERENTIAL_LAYOUT=v1/root BERTH_DIFFERENTIAL_DUMP=/tmp/facts go test …
//	                                            one config, or lines of commands.txt, and all facts about it in files
//	BERTH_DIFFERENTIAL_KEEP=/tmp/found go test …    keeps all differences, those that are explained as well
//	BERTH_DIFFERENTIAL_AGAIN=/tmp/found go test …   tries the table on them, without running anything
//	BERTH_DIFFERENTIAL=whole BERTH_DIFFERENTIAL_SHARE=2/24 …    a share of the whole; what all of them have kept, in one
//	                                            file, is tried for rows that match nothing by whole and AGAIN
//
// To add an entry of config.json, or a value of one, add a line to configs.txt, in each section of
// things that it touches; TestEveryEntry fails for an entry of the specification that has none. A
// command line is a line of commands.txt.
//
// To explain a difference, add a row to table.txt:
//
//	== What differs, as a title
//	keys: names of facts, with * for anything, " | " between several
//	when: lines of the config, or the command and the state, that it belongs to
//	layout: hosts and users
//	guest: only, where it is the guest's kernel that makes it
//	ours, runc, crun: the values
//	verdict: better, equal, or open for a defect that is known and not mended yet
//	why: the reason, for those who move from runc; of an open one what the peers do
//
// The first three narrow it down: a row that matches more than it explains hides what comes next.
// What is worse than the peers do belongs into the code: "open" is for until then, and goes with
// the mend, as a row that matches nothing fails a whole run.
//
// lines.go and pointer.go make configs of lines; base_test.go bundles of configs; layouts_test.go
// the kinds of host; worker_test.go and pool_test.go the processes in them; run_test.go and
// commands_test.go what is run; facts_test.go and host_test.go what is noted; compare.go, table.go
// and collect_test.go what is made of it.
package main
