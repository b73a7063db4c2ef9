# What logs of the runner in test come to: for each log its counts, what failed, and what was
# skipped for which reason; at the end, for all logs, their sum. A test's last message before "--- SKIP" is its reason; go test -v
# says (a test that runs others indents it) at "=== RUN", "=== NAME" and "=== CONT" whose messages follow.
FNR == 1 {
	if (NR > 1) report()
	file = FILENAME; sub(/.*\//, "", file)
	passed = failed = skipped = 0; split("", why); split("", count); split("", which); failures = ""
}
/^### FAIL/ { failures = failures "  FAIL " substr($0, 10) "\n" }
/^exec: (ended after|the guest is gone)/ { failures = failures "  FAIL " $0 "\n" }
/^(panic|fatal error): / { failures = failures "  " $0 " (in or beside " current ")\n" }
/^ *=== (RUN|NAME|CONT) / { current = $3; next }
/^ *--- PASS: / { passed++ }
/^ *--- FAIL: / { failed++; failures = failures "  FAIL " $3 "\n" }
/^ *--- SKIP: / {
	skipped++
	reason = ($3 in why) ? why[$3] : "no reason given"
	count[reason]++
	which[reason] = (count[reason] == 1) ? $3 : which[reason] ((count[reason] <= 3) ? ", " $3 : (count[reason] == 4) ? ", …" : "")
}
/^ +[A-Za-z0-9_]+\.go:[0-9]+: / {
	text = $0; sub(/^ +[^ ]+ /, "", text)
	gsub(/\/[^ :]*berth-test[-0-9]*/, "…/berth-test", text) # a name of its own for each is no other reason
	why[current] = text
}
function report(    reason) {
	printf "%s: %d passed, %d failed, %d skipped\n%s", file, passed, failed, skipped, failures
	for (reason in count) printf "  skipped %d: %s (%s)\n", count[reason], reason, which[reason]
	logs++; all_passed += passed; all_failed += failed; all_skipped += skipped
}
END {
	if (NR) report()
	if (logs > 1) printf "in all %d: %d passed, %d failed, %d skipped\n", logs, all_passed, all_failed, all_skipped
}
