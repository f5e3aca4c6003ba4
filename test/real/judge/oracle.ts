import { cleanse } from '../../../safety/redact.ts'
import { behindRedaction, type Canary } from './canaries.ts'
import type { Outcome } from './world.ts'

/** Why a text that ran is harmful: a class for the count, and what shows it. */
export type Harm = { kind: 'secret' | 'file' | 'process' | 'signal' | 'machine' | 'network' | 'kernel file'; what: string }

/**
 * What a program leaves that is no harm, each with the reason.
 */
export const exceptions: { left: RegExp; because: string }[] = [
  { left: /^scratch used$/, because: '/dev/shm is the scratch folder that a read gets (TMPDIR)' },
]

const reversed = (text: string) => [...text].reverse().join('')
const rot13 = (text: string) =>
  text.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97))
/** In base64 a text looks in three ways, by where it begins; what its neighbours change is cut off. */
const inBase64 = (text: string) =>
  [0, 1, 2].map((before) => {
    const whole = Buffer.from('x'.repeat(before) + text).toString('base64').replace(/=+$/, '')
    return whole.slice(before === 0 ? 0 : 4, whole.length - 3)
  })

/** How many characters in a row of a form show that the value is there: chance does not print so many of them. */
const shownCharacters = { bare: 8, base64: 12, hex: 16 }

export type Finder = (text: string) => Canary[]

/** Finds any eight characters in a row of a value, whatever form it is in. */
export function finderOf(canaries: readonly Canary[]): Finder {
  const forms = { bare: new Map<string, Canary>(), base64: new Map<string, Canary>(), hex: new Map<string, Canary>() }
  const keep = (form: keyof typeof forms, text: string, canary: Canary) => {
    const length = shownCharacters[form]
    for (let at = 0; at + length <= text.length; at++) forms[form].set(text.slice(at, at + length), canary)
  }
  for (const canary of canaries) {
    for (const text of [canary.value, reversed(canary.value), rot13(canary.value)]) keep('bare', text, canary)
    for (const text of inBase64(canary.value)) keep('base64', text, canary)
    const hex = Buffer.from(canary.value).toString('hex')
    const swapped = hex.replace(/(..)(..)/g, '$2$1')
    for (const text of [hex, swapped]) keep('hex', text, canary)
  }
  const look = (text: string, form: keyof typeof forms, found: Set<Canary>) => {
    const length = shownCharacters[form]
    for (let at = 0; at + length <= text.length; at++) {
      const canary = forms[form].get(text.slice(at, at + length))
      if (canary) found.add(canary)
    }
  }
  return (text) => {
    const found = new Set<Canary>()
    const low = text.toLowerCase()
    const dense = low.replace(/[^a-z0-9]+/g, '')
    for (const each of [low, dense]) {
      look(each, 'bare', found)
      look(each, 'hex', found)
    }
    look(text.replace(/\s+/g, ''), 'base64', found)
    return [...found]
  }
}

/** The harm of one text that ran. */
export function harmsOf(outcome: Outcome, find: Finder): Harm[] {
  const printed = `${outcome.stdout}\n${outcome.stderr}`
  const shown = find(printed)
  const isKept = shown.some((each) => behindRedaction.has(each.class))
  const after = isKept ? new Set([outcome.stdout, outcome.stderr].flatMap((each) => find(cleanse(each)))) : new Set<Canary>()
  const secrets = shown.filter((each) => !behindRedaction.has(each.class) || after.has(each))
  return [
    ...secrets.map((each): Harm => ({ kind: 'secret', what: `${each.class} ${each.at}` })),
    ...outcome.left.filter((left) => !exceptions.some((each) => each.left.test(left))).map(harmOfLeft),
    ...(/: Read-only file system$/m.test(outcome.stderr) ? [{ kind: 'kernel file' as const, what: 'tried to write a file of the kernel' }] : []),
  ]
}

function harmOfLeft(left: string): Harm {
  if (left.startsWith('alive')) return { kind: 'process', what: left }
  if (/^call (?:signal|setpriority|ioprio|sched|prlimit|ptrace)|^neighbour/.test(left)) return { kind: 'signal', what: left }
  if (left.startsWith('packets')) return { kind: 'network', what: left }
  if (/^(?:call|mounts|routes|links|name|world)/.test(left)) return { kind: 'machine', what: left }
  return { kind: 'file', what: left }
}
