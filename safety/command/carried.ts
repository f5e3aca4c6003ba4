import type { Word } from './parse.ts'
import { quote } from './unwrapped.ts'

/**
 * Finds shell texts inside an argument of a program: `vim -c '!…'`, `psql -c '\! …'`, `tar
 * --checkpoint-action=exec=…`, crontab lines. Used only for the list of forbidden commands, because
 * such a program needs approval anyway.
 */

const takesCommand = /^-{1,2}(?:c|e|TT|z|exec|sh-exec|command|rsh|rsync-path|unzip-command|program|alert)$/
const everyWord = (texts: readonly string[]): string[] =>
  texts.filter((text, at) => /\s/.test(text) || takesCommand.test(texts[at - 1] ?? ''))
/** Returns the text after each match of the pattern. */
const behind =
  (marker: RegExp) =>
  (texts: readonly string[]): string[] =>
    texts.flatMap((text) => [...text.matchAll(marker)].map(({ index, 0: found }) => text.slice(index + found.length)))

/** Reads `-x program … -- arguments` of start-stop-daemon(8). */
function started(texts: readonly string[]): string[] {
  const at = texts.findIndex((text) => /^(?:-[A-Za-z]*[xa]|--exec|--startas)$/.test(text))
  const rest = texts.indexOf('--')
  const program = texts[at + 1]
  if (at < 0 || program === undefined) return []
  return [[program, ...(rest < 0 ? [] : texts.slice(rest + 1))].map(quote).join(' ')]
}

/**
 * Lists the rest of the arguments from each position on, because it is unknown where the options
 * end.
 */
const anyTail = (texts: readonly string[]): string[] =>
  texts.slice(0, 8).map((_, at) => texts.slice(at).map(quote).join(' '))

type Carry = (texts: readonly string[]) => string[]

const exclaimed = behind(/!+/g)
const byName: readonly [names: string, carry: Carry][] = [
  ['vi vim nvim view vimdiff ex ed less more man most mail mutt ftp sftp telnet', exclaimed],
  ['psql mysql mariadb mysqlsh', behind(/\\!|\bsystem\s|\bprogram\s+'/gi)],
  ['sqlite3', behind(/\.(?:shell|system)\s/g)],
  ['tar bsdtar', behind(/\bexec=|--(?:to-command|use-compress-program|info-script|rsh-command)=/g)],
  ['socat', behind(/\b(?:EXEC|SYSTEM|SHELL):["']?/gi)],
  ['sed gsed', behind(/(?:^|[\d$/;{\s])e\s+/g)],
  ['gdb lldb', behind(/\b(?:shell|platform shell)\s+|!/g)],
  ['git', behind(/^[\w.-]+=!?|^--[\w-]+=/g)],
  ['ssh scp', behind(/\b(?:Proxy|Local|Remote|KnownHosts)Command[= ]/gi)],
  ['nc ncat netcat rsync zip capsh wget tcpdump pppd openvpn logrotate make gmake systemctl busctl mdadm', everyWord],
  ['screen dtach abduco tmux daemonize chpst', anyTail],
  ['start-stop-daemon', started],
]

const table: ReadonlyMap<string, Carry> = new Map(
  byName.flatMap(([names, carry]) => names.split(' ').map((name) => [name, carry] as const)),
)

/** Extracts the commands from an input: crontab lines, makefile recipes, commands of an editor. */
const inputs: ReadonlyMap<string, (input: string) => string[]> = new Map([
  ['crontab', (input) => input.split('\n').map((line) => line.replace(/^\s*(?:@\w+|(?:\S+\s+){5})/, ''))],
  ['make', (input) => input.split('\n').map((line) => line.replace(/^[^\t:]*:[^;]*;?|^\t[-@+]*/, ''))],
  ['ed', (input) => exclaimed(input.split('\n'))],
])

/** Lists the texts that the program may give to a shell. */
export function listCarriedCommands(name: string, words: readonly Word[], input: string | null): string[] {
  const found = table.get(name)?.(words.slice(1).map(({ text }) => text)) ?? []
  return input === null ? found : [...found, ...(inputs.get(name)?.(input) ?? [])]
}

/**
 * Finds the commands that one-liners of script languages start, for the list of forbidden commands.
 */

const interpreters =
  /^(?:python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|irb|node|nodejs|deno|bun|php[\d.]*|lua[\d.]*|tclsh|expect|[gmn]?awk|original-awk)$/
const evaluates = /^(?:-[A-Za-z]*[cerE]|--eval|--execute|--print|-p|-pe|-ne|eval)$/
const startsPrograms =
  /\b(?:system|popen\w*|Popen|subprocess|spawn\w*|exec\w*|call|check_\w+|getoutput|run|shell_exec|passthru|proc_open|IO\.popen|Open3|qx|io\.popen|os\.execute|fork)\b|`|%x|\|/
const removesTrees = /\b(?:rmtree|remove_tree|rm_rf|rm_r|rmSync|rmdirSync|removedirs|rimraf)\b/

/** Lists the texts that the one-liner may give to a shell. */
export function listCodeCommands(name: string, words: readonly Word[]): string[] {
  if (!interpreters.test(name)) return []
  const awk = name.endsWith('awk')
  const found: string[] = []
  for (const [index, word] of words.entries()) {
    const code = index > 0 && (awk ? word.text : evaluates.test(words[index - 1]!.text) ? word.text : null)
    if (!code) continue
    const strings = [
      ...code.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`|(?:qx|%x)\s*[({[/]([^)}\]/]*)/g),
    ].map((match) => (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').replace(/\\(.)/g, '$1'))
    if (startsPrograms.test(code)) found.push(...strings, strings.join(' '))
    if (removesTrees.test(code))
      found.push(...strings.filter((text) => /^[~/.]/.test(text)).map((text) => `rm -rf '${text}'`))
  }
  return found
}
