import type { Word } from './tree.ts'
import { argv, asks, empty, type Unwrapped } from './unwrapped.ts'
import type { InputKind } from './xargs.ts'

/** What `find` comes to, and the commands that it runs on it. */

/**
 * `find … -exec command {} ;`: what is found becomes an operand. Below roots that are plain, that is a path of a known pattern, and the
 * command is judged with it; find itself is judged without what it runs.
 */
export function unwrapFind(words: readonly Word[]): Unwrapped | null {
  const result = empty()
  const own: Word[] = [words[0]!]
  const found = findPathWord(words)
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at]!
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(word.text)) {
      own.push(word)
      continue
    }
    const rest = words.slice(at + 1)
    // A plus sign ends the command behind `{}` alone.
    const end = rest.findIndex(({ text }, index) => text === ';' || (text === '+' && rest[index - 1]?.text === '{}'))
    const command = rest.slice(0, end < 0 ? rest.length : end)
    // With -execdir it runs wherever something was found: what it reads or obeys there cannot be said.
    const isPlain = found !== null && end > 0 && word.text === '-exec' && command[0]?.text !== '{}'
    if (!isPlain || command.some(({ text }) => text !== '{}' && text.includes('{}')))
      result.askReason ??= asks(word, 'runs a command on whatever is found')
    if (end < 0)
      result.candidates.push(
        rest.slice(
          0,
          Math.max(
            0,
            rest.findIndex(({ text }) => text === '+'),
          ),
        ),
      )
    result.inner.push(argv(isPlain ? command.map((one) => (one.text === '{}' ? found : one)) : command))
    result.candidates.push(command)
    at += end < 0 ? rest.length : end + 1
  }
  if (result.inner.length === 0) return null
  result.inner.push(argv(own))
  result.judged = true
  return result
}

/** A word for every path that `find` may come to, as a pattern; null where its roots are not plain. */
export function findPathWord(words: readonly Word[]): Word | null {
  const from = words.slice(1).findIndex(({ text }) => /^[-(!]/.test(text) && !/^-[HLP]$/.test(text))
  const roots = words.slice(1, from < 0 ? undefined : from + 1).filter(({ text }) => !/^-[HLP]$/.test(text))
  const isPlain =
    roots.length === 1 && roots[0]!.literal && /^\/[\w./-]+$/.test(roots[0]!.text) && !roots[0]!.text.includes('..')
  if (!isPlain || words.some(({ text }) => /^-(?:L|follow)$/.test(text))) return null
  const root = roots[0]!.text.replace(/\/+$/, '')
  const texts = words.map(({ text }) => text)
  const at = texts.indexOf('-name')
  const isAlone = at > 0 && !texts.some((text) => /^(?:-o|-or|,|!|-not|\()$/.test(text))
  const name = isAlone && /^[\w.*-]+$/.test(texts[at + 1] ?? '') ? texts[at + 1]! : '*'
  // Hidden names are found as well, which a `*` of a shell would leave out.
  const pattern = name.startsWith('*') && name === '*' ? `${root}/**` : `${root}/**/${name}`
  return { text: pattern, literal: false, quoting: 'bare', pattern, found: true }
}

/** What kind of words a command prints, one on each line. */
export function classifyOutput(words: readonly Word[]): InputKind {
  const texts = words.map(({ text }) => text)
  const [name, verb] = texts
  if (!words.every(({ literal }) => literal)) return null
  if (name === 'pgrep') return texts.some((text) => /^(?:-[a-z]*[al]|--list)/.test(text)) ? null : { kind: 'numbers' }
  if (name === 'pidof' || (name === 'lsof' && texts.includes('-t'))) return { kind: 'numbers' }
  const isQuiet = texts.some((text) => /^(?:-[a-z]*q[a-z]*|--quiet)$/.test(text))
  if (/^(?:docker|podman|crictl)$/.test(name ?? '') && (verb === 'ps' || verb === 'images'))
    return isQuiet ? { kind: 'names' } : null
  if (name !== 'find' || texts.some((text) => /^-(?:printf|ls|exec|execdir|fprint)/.test(text))) return null
  const found = findPathWord(words)
  return found && { kind: 'paths', found, separated: texts.includes('-print0') }
}
