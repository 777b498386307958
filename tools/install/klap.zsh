#compdef klap klap-ptx
# Completion of klap and klap-ptx in zsh. Subcommands and options are read from the program's own help each time.

# This prints the rows of one kind in a help text, each as its first word, a tab and its explanation. The kinds are those
# of klap.bash.
_klap_rows() {
  awk -v kind="$1" '
    /^[A-Z].*:/ { in_commands = /^Subcommands:/ }
    kind == "command" && in_commands && /^  [a-z]/ || kind != "command" && /^  -/ && (kind == "option" || /^  [^ ]+ [^ ]/) {
      name = $1
      text = $0
      sub(/^  [^ ]+( [^ ]+)?  +/, "", text)
      for (i = split(name, names, ","); i > 0; --i) print names[i] "\t" text
    }'
}

# Adds the rows that standard input has.
_klap_add() {
  local row
  local -a names texts
  while IFS= read -r row; do
    names+=("${row%%$'\t'*}")
    texts+=("${(r:28:)row%%$'\t'*} ${row#*$'\t'}")
  done
  compadd "$@" -l -d texts -a names
}

_klap() {
  local tool="$words[1]" help word option=""
  local -a commands
  help="$("$tool" --help 2> /dev/null)" || return 1
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ -n $option ]]; then
      option=""  # this word is its value
    elif _klap_rows command <<< "$help" | cut -f 1 | grep -qxFe "$word"; then
      commands+=("$word")
      help="$("$tool" "${commands[@]}" --help 2> /dev/null)" || return 1
    elif _klap_rows valued <<< "$help" | cut -f 1 | grep -qxFe "$word"; then
      option="$word"
    elif [[ $help == *" PROGRAM"* && ( $word == -- || $word != -* ) ]]; then
      _default  # the rest is the program's
      return
    fi
  done
  if [[ $option == --set ]]; then
    "$tool" settings 2> /dev/null | sed -n 's/^KLAP_\([A-Z_]*\).*/\1=/p' | tr '[:upper:]' '[:lower:]' | _klap_add -S ''
  elif [[ -n $option ]]; then
    _files
  elif [[ $words[CURRENT] == -* ]]; then
    _klap_rows option <<< "$help" | _klap_add
  elif [[ $help == *$'\n'Subcommands:* ]]; then
    _klap_rows command <<< "$help" | _klap_add
  else
    _default
  fi
}

_klap "$@"
