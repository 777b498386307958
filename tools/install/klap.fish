# Completion of klap and klap-ptx in fish. Subcommands and options are read from the program's own help each time.

# This prints the rows of one kind in a help text, each as its first word, a tab and its explanation. The kinds are those
# of klap.bash.
function __klap_rows -a kind
    awk -v kind="$kind" '
        /^[A-Z].*:/ { in_commands = /^Subcommands:/ }
        kind == "command" && in_commands && /^  [a-z]/ || kind != "command" && /^  -/ && (kind == "option" || /^  [^ ]+ [^ ]/) {
            name = $1
            text = $0
            sub(/^  [^ ]+( [^ ]+)?  +/, "", text)
            for (i = split(name, names, ","); i > 0; --i) print names[i] "\t" text
        }'
end

function __klap_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l tool $words[1]
    set -l commands
    set -l option ""
    set -l help ($tool --help 2> /dev/null | string collect)
    for word in $words[2..]
        if test -n "$option"
            set option "" # this word is its value
        else if contains -- $word (printf '%s\n' $help | __klap_rows command | string split -f 1 \t)
            set -a commands $word
            set help ($tool $commands --help 2> /dev/null | string collect)
        else if contains -- $word (printf '%s\n' $help | __klap_rows valued | string split -f 1 \t)
            set option $word
        else if string match -q '* PROGRAM*' -- $help; and string match -qr '^(--$|[^-])' -- $word
            return # the rest is the program's, and fish completes file names
        end
    end
    if test "$option" = --set
        $tool settings 2> /dev/null | string match -rg '^KLAP_([A-Z_]+)' | string lower | string replace -r '$' =
    else if test -n "$option"
        return
    else if string match -q -- '-*' $current
        printf '%s\n' $help | __klap_rows option
    else
        printf '%s\n' $help | __klap_rows command
    end
end

# fish completes file names where nothing else fits.
complete -c (status basename | string replace -r '\.fish$' '') -a '(__klap_candidates)'
