import type { Observed } from './observe.ts'
import type { Finding } from './verdict.ts'

/** What of the machine a proven read must see as it is: without it, its answer would be wrong. */
export type Sight = 'network' | 'mounts'

const networkFiles = /\/(?:proc\/(?:self|thread-self|\d+)?\/?net|sys\/class\/net)\b/
const mountFiles = /\/proc\/(?:self\/|thread-self\/|\d+\/)?mount|\/etc\/mtab/

/**
 * What a sandbox has to lift for a text. In a namespace without the network `ss` would find nobody listening, and every mount would be
 * read-only.
 */
export function sightsOf(programs: readonly Observed[], text: string): Sight[] {
  const sights: Sight[] = []
  const mayName = text.includes('/proc') || text.includes('/sys/class') || text.includes('/etc/mtab')
  if (reaches(programs, 'network') || (mayName && networkFiles.test(text))) sights.push('network')
  if (reaches(programs, 'mounts') || (mayName && mountFiles.test(text))) sights.push('mounts')
  return sights
}

function reaches(programs: readonly Observed[], sight: Sight): boolean {
  for (const { reach } of programs) if (reach === sight) return true
  return false
}

/**
 * What is lifted is lifted for the whole text. So nothing may stand beside it that obeys something, or could use it: beside what looks at
 * the network, a program that obeys nothing; beside what looks at the mounts, one that only reads and prints besides.
 */
export function besideFinding(programs: readonly Observed[], sights: readonly Sight[]): Finding | null {
  for (const sight of sights) {
    const other = programs.find(
      ({ reach, obeys }) => reach !== sight && (obeys || (sight === 'mounts' && reach !== 'prints')),
    )
    if (!other) continue
    const why = other.obeys ? 'obeys what it finds here' : 'does more than read and print'
    const reason = `${other.name} ${why}, and may not run beside what looks at the ${sight} of the machine: ask for each by itself`
    return { code: 'SURROUNDINGS', reason, token: other.name }
  }
  return null
}
