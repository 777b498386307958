# shellcheck shell=bash
# Completion of klap and klap-ptx in bash. Subcommands and options are read from the program's own help each time.

# This prints the first word of each line of one kind in a help text. The kinds are command, option, and valued, which is
# an option with a value.
_klap_words() {
  awk -v kind="$1" '
    /^[A-Z].*:/ { in_commands = /^Subcommands:/ }
    kind == "command" && in_commands && /^  [a-z]/ { print $1 }
    kind != "command" && /^  -/ && (kind == "option" || /^  [^ ]+ [^ ]/) { gsub(",", "\n", $1); print $1 }'
}

# This prints the keys of the settings that --set takes, each with its equals sign.
_klap_keys() {
  "$1" settings 2> /dev/null | sed -n 's/^KLAP_\([A-Z_]*\).*/\1=/p' | tr '[:upper:]' '[:lower:]'
}

_klap() {
  local tool="$1" words=() help word option="" commands=() i
  COMPREPLY=()
  # bash makes three words of key=value, which are one again here.
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word="${COMP_WORDS[i]}"
    if [ ${#words[@]} -gt 0 ] && [[ $word == = || ${COMP_WORDS[i - 1]} == = ]]; then
      words[-1]+="$word"
    else
      words+=("$word")
    fi
  done
  local current="${words[-1]}"
  help="$("$tool" --help 2> /dev/null)" || return 0
  for word in "${words[@]:0:${#words[@]}-1}"; do
    if [ -n "$option" ]; then
      option=""  # this word is its value
    elif _klap_words command <<< "$help" | grep -qxFe "$word"; then
      commands+=("$word")
      help="$("$tool" "${commands[@]}" --help 2> /dev/null)" || return 0
    elif _klap_words valued <<< "$help" | grep -qxFe "$word"; then
      option="$word"
    elif [[ $help == *" PROGRAM"* ]] && [[ $word == -- || $word != -* ]]; then
      return 0  # the rest is the program's, and bash completes file names
    fi
  done
  local candidates=""
  if [ "$option" = --set ]; then
    candidates="$(_klap_keys "$tool")"
    compopt -o nospace 2> /dev/null
  elif [ -n "$option" ]; then
    return 0
  elif [[ $current == -* ]]; then
    candidates="$(_klap_words option <<< "$help")"
  else
    candidates="$(_klap_words command <<< "$help")"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
}

# bash completes file names where nothing else fits.
complete -o default -F _klap klap klap-ptx
