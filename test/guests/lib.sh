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
own_apt() { # SUITE: from here on apt-get has lists and archives of its own in $work, so that this machine's are left as they are
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $BERTH_MIRROR $1 main" > "$work/sources"
	cat > "$work/apt.conf" <<-CONF
		Dir::Etc::SourceList "$work/sources"; Dir::Etc::SourceParts "/dev/null"; Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$work/lists"; Dir::Cache "$work"; Acquire::Languages "none"; APT::Sandbox::User "root";
	CONF
	export APT_CONFIG=$work/apt.conf
	apt-get -qq update || exit $cannot
}
image_of() { # kernel|kernel-cluster|SUITE: its folder; named by what it is made from, so that a change makes a new one
	local inputs
	case $1 in
	kernel) inputs="make-kernel uml.config" ;;
	kernel-cluster) inputs="make-kernel uml.config with-options uml-cluster.config" ;;
	*) inputs="make-image guest/agent guest/agent.service" ;;
	esac
	# shellcheck disable=SC2086
	echo "$images/$1-$(cd "$here" && cat $inputs | sha256sum | cut -c1-16)"
}
