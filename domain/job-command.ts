/**
 * The command of a job: a program and its words. Refuses a text that a shell or interpreter would
 * read, also behind another program: nothing here knows what such a text does with the words filled
 * in.
 */

/**
 * Programs that read a text: shells, and languages that take a program as a word. A wrapper may
 * start one anywhere.
 */
const readers =
  /^(?:(?:r?ba|da|z|k|mk|pdk|a|c|tc|fi|ya|elvi|xon|pw)?sh|nu|powershell|python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|luajit)$/i
/** Others of them, whose names are plain words elsewhere: they count where a program stands. */
const plainReaders = /^(?:node|nodejs|deno|bun|tclsh[\d.]*|expect|rscript|osascript|groovy|julia|guile|emacs|vim?|ex)$/i
/** Programs that hand a text to a shell, or words to a shell of another machine. */
const handers =
  /^(?:ssh|slogin|rsh|dsh|pssh|pdsh|clush|parallel-ssh|parallel|eval|watch|at|batch|crontab|tmux|screen|script|su|runuser|flock|entr|xargs|env)$/i
/** Options by which these take a text. */
const textOptions =
  /^(?:-[A-Za-z]*[ceErS]|--?(?:command|eval|exec|print|code|execute|split-string|session-command)(?:=.*)?)$/i
/** The same for a program that nothing is known of: short options of three letters at most. */
const takesText = /^(?:-[A-Za-z]{0,2}[ce]|--?(?:command|eval|exec|execute))$/
/** Ansible's modules that run a text, however `-m` is written; without a module it is `command`. */
const remoteModule = /^(?:ansible\.(?:builtin|legacy)\.)?(?:shell|command|raw|script|expect)$/
const moduleOption = /^(?:-m|--module-name)=?/

const baseName = (word: string): string => word.slice(word.lastIndexOf('/') + 1)

/**
 * Says why these words are a text for a shell or an interpreter; null where they are a program and
 * its words.
 */
export function findScriptText(words: readonly string[]): string | null {
  for (const [at, word] of words.entries()) {
    const name = baseName(word)
    const rest = words.slice(at + 1)
    const isProgram = at === 0 || isBehindWrapper(words, at)
    const isReader = readers.test(name) || (isProgram && plainReaders.test(name))
    if (isReader && rest.some((each) => textOptions.test(each))) return `${name} reads a text`
    if (!isProgram) continue
    if (handers.test(name) && handsOn(name.toLowerCase(), rest)) return `${name} hands a text to a shell`
    if (name === 'ansible' && remoteModule.test(moduleOf(rest)))
      return 'ansible runs a text on other machines: write a playbook'
  }
  const behind = wrappers.test(baseName(words[0] ?? '')) ? words.slice(1).find(isProgramWord) : undefined
  if (behind?.includes('{')) return `${words[0]} would start what a resource is called`
  // An unknown shell might take its text here, or something is filled in: a word has to be one to
  // every reader.
  const odd = words.find(
    (word, at) => (takesText.test(words[at - 1] ?? '') || /\{(?:kind|id|name)\}/.test(word)) && !isPlain(word),
  )
  return odd === undefined ? null : `${JSON.stringify(odd.slice(0, 80))} is more than one word to a shell`
}

function moduleOf(words: readonly string[]): string {
  const at = words.findIndex((each) => moduleOption.test(each))
  const written = words[at]?.replace(moduleOption, '')
  if (at < 0) return words.some((each) => /^(?:-a|--args)/.test(each)) ? 'command' : ''
  return written || (words[at + 1] ?? '')
}

/** The first word behind wrappers that is no option, setting or number of theirs. */
const isProgramWord = (word: string): boolean =>
  !/^(?:-|[A-Za-z_]\w*=|[\d.]+[smhd]?$)/.test(word) && !wrappers.test(baseName(word))

/** `env A=b program` and `flock FILE program` hand words on, and no text. */
function handsOn(name: string, rest: readonly string[]): boolean {
  if (name === 'env') return rest.some((word) => /^(?:-[A-Za-z]*S|--split-string)/.test(word))
  if (name === 'xargs') return true
  if (name === 'flock' || name === 'su' || name === 'runuser' || name === 'script')
    return rest.some((each) => textOptions.test(each))
  return true
}

/** A word that a wrapper may start. Its options decide which: each is taken for it. */
function isBehindWrapper(words: readonly string[], at: number): boolean {
  return wrappers.test(baseName(words[0] ?? '')) && !(words[at] ?? '').startsWith('-')
}

const wrappers =
  /^(?:env|sudo|doas|nice|ionice|timeout|nohup|setsid|stdbuf|nsenter|unshare|chroot|time|taskset|chrt|systemd-run|systemd-inhibit|flock|runuser|setpriv|firejail|bwrap|proot|ltrace|strace|busybox|toybox)$/i

/**
 * A word that stays one for any program: without a blank, quote or sign of a shell. Also settings
 * with blanks, numbers in brackets, Ansible's patterns of hosts (`web:!web-1:&prod`), and JSON of
 * such words.
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
