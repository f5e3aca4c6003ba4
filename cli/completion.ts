import type { Command } from 'commander'
import type { CliCommand } from './connection.ts'
import { parseOneOf, print } from './ui/terminal.ts'

/**
 * Adds `completion`, which prints a script that completes all commands and options of the program.
 */
export function addCompletionCommand(program: CliCommand): void {
  program
    .command('completion')
    .description('a script that completes commands and options in your shell')
    .argument('<shell>', 'bash, zsh or fish', parseOneOf(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nExample:\n  source <(nightshift completion bash)\n  nightshift completion fish > ~/.config/fish/completions/nightshift.fish',
    )
    .action(async (shell: string) => {
      // Loads all commands, because `nightshift completion` itself loads only one.
      const { buildProgram } = await import('./program.ts')
      const words = collectWords(await buildProgram())
      if (shell === 'fish') return print(buildFishScript(words))
      print(
        shell === 'bash'
          ? buildBashScript(words)
          : `autoload -U +X bashcompinit && bashcompinit\n${buildBashScript(words)}`,
      )
    })
}

type Words = Map<string, string[]>

function collectWords(command: Command, path: string[] = [], words: Words = new Map()): Words {
  const visible = command.commands.filter((each) => each.name() !== 'help' || path.length === 0)
  const options = command.options.map((option) => option.long ?? option.short ?? '').filter(Boolean)
  words.set(path.join(' '), [...visible.map((each) => each.name()), ...options, '--help'])
  for (const each of visible) collectWords(each, [...path, each.name()], words)
  return words
}

function buildBashScript(words: Words): string {
  const cases = [...words].map(([path, offered]) => `    '${path}') words='${offered.join(' ')}' ;;`).join('\n')
  return `_nightshift() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases}
    esac
    [ -n "$words" ] && break
    [ -z "$path" ] && break
    case "$path" in *' '*) path="\${path% *}" ;; *) path='' ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _nightshift nightshift`
}

/**
 * Builds a script that offers the sub-commands and options of the longest command on the command
 * line, as in bash. The script ignores the values of options.
 */
function buildFishScript(words: Words): string {
  const cases = [...words].map(
    ([path, offered]) => `            case '${path}'\n                set words ${offered.join(' ')}`,
  )
  return `function __nightshift_words
    set -l path
    for word in (commandline --tokenize --cut-at-cursor --current-process)[2..]
        string match --quiet -- '-*' $word; or set --append path $word
    end
    while true
        set -l words
        switch "$path"
${cases.join('\n')}
        end
        if set --query words[1]; or not set --query path[1]
            string join \\n -- $words
            return
        end
        set --erase path[-1]
    end
end
complete --command nightshift --no-files --arguments '(__nightshift_words)'`
}
