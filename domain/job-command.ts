/**
 * Checks the command of a job: a program and its arguments. Refuses the text of a script for a
 * shell or interpreter, even behind another program, because the effect of values that are filled
 * into a script is unknown.
 */

/**
 * Programs that run a script: shells, and languages that accept a script as an argument. A wrapper
 * may start one of these programs at any position.
 */
const readers =
  /^(?:(?:r?ba|da|z|k|mk|pdk|a|c|tc|fi|ya|elvi|xon|pw)?sh|nu|powershell|python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|luajit)$/i
/**
 * Script interpreters whose names are ordinary words. These names count only where a program is
 * expected.
 */
const plainReaders = /^(?:node|nodejs|deno|bun|tclsh[\d.]*|expect|rscript|osascript|groovy|julia|guile|emacs|vim?|ex)$/i
/** Programs that pass a text to a shell, or arguments to a program, perhaps elsewhere. */
const handers =
  /^(?:ssh|slogin|rsh|dsh|pssh|pdsh|clush|parallel-ssh|parallel|eval|watch|at|batch|crontab|tmux|screen|script|su|runuser|flock|entr|xargs|env)$/i
/** Options with which the programs above accept a script. */
const textOptions =
  /^(?:-[A-Za-z]*[ceErS]|--?(?:command|eval|exec|print|code|execute|split-string|session-command)(?:=.*)?)$/i
/** Options, short or with a known name, that may accept a script in unknown programs. */
const takesText = /^(?:-[A-Za-z]{0,2}[ce]|--?(?:command|eval|exec|execute))$/
/** Modules of Ansible that run a text in a shell. Ansible's default module is `command`. */
const remoteModule = /^(?:ansible\.(?:builtin|legacy)\.)?(?:shell|command|raw|script|expect)$/
const moduleOption = /^(?:-m|--module-name)=?/

const baseName = (word: string): string => word.slice(word.lastIndexOf('/') + 1)

/** Explains why a command contains a script; null if it is a program and its arguments. */
export function findScriptText(words: readonly string[]): string | null {
  for (const [at, word] of words.entries()) {
    const name = baseName(word)
    const rest = words.slice(at + 1)
    const isProgram = at === 0 || isBehindWrapper(words, at)
    const isReader = readers.test(name) || (isProgram && plainReaders.test(name))
    if (isReader && rest.some((each) => textOptions.test(each))) return `${name} runs code from its arguments`
    if (!isProgram) continue
    if (handers.test(name) && handsOn(name.toLowerCase(), rest)) return `${name} passes its arguments to a shell`
    if (name === 'ansible' && remoteModule.test(moduleOf(rest)))
      return 'ansible runs a command from its arguments on other machines: write a playbook'
  }
  const behind = wrappers.test(baseName(words[0] ?? '')) ? words.slice(1).find(isProgramWord) : undefined
  if (behind?.includes('{')) return `${words[0]} would run the name of a resource as a command`
  // Refuses a word that a shell or interpreter could split, if it follows an option that may take a
  // script, or if a value is filled into the word.
  const odd = words.find(
    (word, at) => (takesText.test(words[at - 1] ?? '') || /\{(?:kind|id|name)\}/.test(word)) && !isPlain(word),
  )
  return odd === undefined ? null : `a shell could read ${JSON.stringify(odd.slice(0, 80))} as more than one word`
}

function moduleOf(words: readonly string[]): string {
  const at = words.findIndex((each) => moduleOption.test(each))
  const written = words[at]?.replace(moduleOption, '')
  if (at < 0) return words.some((each) => /^(?:-a|--args)/.test(each)) ? 'command' : ''
  return written || (words[at + 1] ?? '')
}

/**
 * Whether a word after `sudo`, `env` or another wrapper is a program: not a wrapper, and not an
 * option, setting or number of a wrapper.
 */
const isProgramWord = (word: string): boolean =>
  !/^(?:-|[A-Za-z_]\w*=|[\d.]+[smhd]?$)/.test(word) && !wrappers.test(baseName(word))

/**
 * Whether a program that starts other programs may pass a text to a shell. `env A=b program` and
 * `flock FILE program` pass only arguments, and no text.
 */
function handsOn(name: string, rest: readonly string[]): boolean {
  if (name === 'env') return rest.some((word) => /^(?:-[A-Za-z]*S|--split-string)/.test(word))
  if (name === 'xargs') return true
  if (name === 'flock' || name === 'su' || name === 'runuser' || name === 'script')
    return rest.some((each) => textOptions.test(each))
  return true
}

/**
 * Whether a wrapper may start the word at `at` as a program. Any word except an option counts,
 * because code cannot tell a program from the value of an option.
 */
function isBehindWrapper(words: readonly string[], at: number): boolean {
  return wrappers.test(baseName(words[0] ?? '')) && !(words[at] ?? '').startsWith('-')
}

const wrappers =
  /^(?:env|sudo|doas|nice|ionice|timeout|nohup|setsid|stdbuf|nsenter|unshare|chroot|time|taskset|chrt|systemd-run|systemd-inhibit|flock|runuser|setpriv|firejail|bwrap|proot|ltrace|strace|busybox|toybox)$/i

/**
 * Whether every program reads the word as one word: it has no blank, quote or shell character. Also
 * true for settings with blanks, numbers in brackets, Ansible's host patterns (`web:!web-1:&prod`),
 * and JSON of plain words.
 */
function isPlain(word: string): boolean {
  const filled = word.replaceAll(/\{(?:kind|id|name)\}/g, 'x')
  if (/^(?:[\w./=:@,+~%^-]|\[\d+\]|[:,][!&](?=\w)|(?<=\w[-.]?)\*)*$/.test(filled)) return true
  if (/^[\w.-]+=[\w./=:@,+-]*(?: [\w.-]+=[\w./=:@,+-]*)*$/.test(filled)) return true
  try {
    const parsed: unknown = JSON.parse(filled)
    return typeof parsed === 'object' && parsed !== null && textsIn(parsed).every(isPlain)
  } catch {
    return false
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, under]) => [key, ...textsIn(under)])
}
