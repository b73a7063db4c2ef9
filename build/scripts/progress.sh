# Sourced by what takes long: progress LINE writes a line over the last one on the terminal that is standard error; no LINE, none.
progress() {
	local width
	width=$(stty size 2> /dev/null <&2 | cut -d' ' -f2) || true
	((${width:=80})) || width=80
	printf '\r%s\e[K' "${1:0:width-1}" >&2
}
