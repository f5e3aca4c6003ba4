import { whatIsFound } from './found.ts'
import type { Word } from './tree.ts'
import type { Fed } from './xargs.ts'

/** What kind of words a command prints, one on each line. */
export function feedsOf(words: readonly Word[]): Fed {
  const texts = words.map(({ text }) => text)
  const [name, verb] = texts
  if (!words.every(({ literal }) => literal)) return null
  if (name === 'pgrep') return texts.some((text) => /^(?:-[a-z]*[al]|--list)/.test(text)) ? null : { kind: 'numbers' }
  if (name === 'pidof' || (name === 'lsof' && texts.includes('-t'))) return { kind: 'numbers' }
  const isQuiet = texts.some((text) => /^(?:-[a-z]*q[a-z]*|--quiet)$/.test(text))
  if (/^(?:docker|podman|crictl)$/.test(name ?? '') && (verb === 'ps' || verb === 'images'))
    return isQuiet ? { kind: 'names' } : null
  if (name !== 'find' || texts.some((text) => /^-(?:printf|ls|exec|execdir|fprint)/.test(text))) return null
  const found = whatIsFound(words)
  return found && { kind: 'paths', found, separated: texts.includes('-print0') }
}
