# Common to the commands of this folder; sourced by them.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
cache=${BERTH_GUESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/berth-guests}
images=$cache/images
running=$cache/running
all_guests=(trixie-v2 bookworm-v2 bookworm-hybrid bookworm-v1)

die() { echo "${0##*/}: $*" >&2; exit 125; }
# cannot is for what no change to this repository would mend: its status tells test to skip, and not to fail.
cannot=77
cannot() { echo "SKIP: ${0##*/}: $*" >&2; exit $cannot; }
say() { echo "${0##*/}: $*" >&2; }
image_of() { # kernel|SUITE: its folder; named by what it is made from, so that a change makes a new one
	local inputs
	[[ $1 == kernel ]] && inputs="make-kernel uml.config" || inputs="make-image guest/agent guest/agent.service"
	# shellcheck disable=SC2086
	echo "$images/$1-$(cd "$here" && cat $inputs | sha256sum | cut -c1-16)"
}
