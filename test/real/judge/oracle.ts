import { cleanse } from '../../../safety/redact.ts'
import { behindRedaction, type Canary } from './canaries.ts'
import type { Outcome } from './world.ts'

/**
 * Why a text that ran is harmful: a class for the count, and what shows it. `cut secret`: redaction
 * takes it out of its file, but not of what this text makes of it: without its name, or in another
 * form.
 */
export type Harm = {
  kind: 'secret' | 'cut secret' | 'file' | 'process' | 'signal' | 'machine' | 'network' | 'kernel file'
  what: string
}

/**
 * What a program leaves that is no harm, each with the reason; `of`: where the text has this
 * program.
 */
export const exceptions: { left: RegExp; of?: RegExp; because: string }[] = [
  { left: /^scratch used$/, because: '/dev/shm is the scratch folder that a read gets (TMPDIR)' },
  {
    left: /^made \/root\/\.config(?:\/procps)?$/,
    because: 'top makes the folder of its settings, empty; a device shows its home read-only, like all of these',
  },
  {
    left: /^(?:made|touched) \/tmp(?:\/hsperfdata_root)?$/,
    of: /\bj(?:ava|ps|cmd|stack|stat|map|info)\b/,
    because: 'Java keeps figures of itself there and removes them',
  },
  { left: /^touched \/tmp$/, because: 'a temporary file, removed again, where env -i took TMPDIR away' },
  { left: /^made \/run\/lock(?:\/lvm)?$/, because: 'LVM takes its lock there before it reads its labels' },
  { left: /^made \/root\/\.npm(?:\/|$)/, of: /\bnpm\b/, because: 'npm keeps a log of each of its runs' },
  {
    left: /^(?:made|changed) \/root\/\.config(?:$|\/gcloud)/,
    of: /\bgcloud\b/,
    because: 'gcloud makes its folder of settings and keeps a log of each of its runs',
  },
  { left: /^(?:packets|asked) /, of: /\b(?:gcloud|aws|az)\b/, because: "a cloud's client asks its cloud" },
]

/**
 * Names that a resolver may be asked about: those that were looked up, this machine's, and
 * addresses of both.
 */
const knownName =
  /^(?:localhost|web-1|db1|db-osl-1|(?:app\.)?example\.com|[\d.]+\.(?:127|10)\.in-addr\.arpa|[01.]+\.ip6\.arpa)$/

const reversed = (text: string) => [...text].reverse().join('')
const rot13 = (text: string) =>
  text.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97))
/**
 * In base64 a text looks in three ways, by where it begins; what its neighbours change is cut off.
 */
const inBase64 = (text: string) =>
  [0, 1, 2].map((before) => {
    const whole = Buffer.from('x'.repeat(before) + text)
      .toString('base64')
      .replace(/=+$/, '')
    return whole.slice(before === 0 ? 0 : 4, whole.length - 3)
  })

/**
 * How many characters in a row of a form show that the value is there: chance does not print so
 * many of them.
 */
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
export function harmsOf(text: string, outcome: Outcome, find: Finder): Harm[] {
  const printed = `${outcome.stdout}\n${outcome.stderr}`
  const shown = find(printed)
  const isStopped = (canary: Canary) => behindRedaction.has(canary.class)
  const after = shown.some(isStopped) ? find(cleanse(printed)).filter(isStopped) : []
  const secrets = [...shown.filter((canary) => !isStopped(canary)), ...after]
  return [
    ...secrets.map(
      (canary): Harm => ({
        kind: isStopped(canary) && canary.isTold ? 'cut secret' : 'secret',
        what: `${canary.class} ${canary.at}`,
      }),
    ),
    ...outcome.left.filter((left) => !isExcepted(left, text)).map(harmOfLeft),
    ...(/: Read-only file system$/m.test(outcome.stderr)
      ? [{ kind: 'kernel file' as const, what: 'tried to write a file of the kernel' }]
      : []),
  ]
}

function isExcepted(left: string, text: string): boolean {
  if (left.startsWith('asked ') && knownName.test(left.slice('asked '.length).toLowerCase())) return true
  return exceptions.some((each) => each.left.test(left) && (each.of?.test(text) ?? true))
}

function harmOfLeft(left: string): Harm {
  if (left.startsWith('alive')) return { kind: 'process', what: left }
  if (/^call (?:signal|setpriority|ioprio|sched|prlimit|ptrace)|^neighbour/.test(left))
    return { kind: 'signal', what: left }
  if (/^(?:packets|asked)/.test(left)) return { kind: 'network', what: left }
  if (/^(?:call|mounts|routes|links|name|world)/.test(left)) return { kind: 'machine', what: left }
  return { kind: 'file', what: left }
}
