import { foldText } from './document.ts'

/** A name in a claim's text and where it stands. `literal` was in quotation marks; `id` is a number behind a word such as pid. */
export type Name = { text: string; start: number; end: number; kind: 'name' | 'id' | 'literal' }

const extensions =
  'log|json|jsonl|conf|cfg|ya?ml|toml|ini|service|socket|timer|mount|sock|db|sqlite|txt|csv|gz|xz|zst|sh|py|ts|js|rb|bin|pid|pem|crt|key|cnf'
const patterns: { kind: Name['kind']; pattern: RegExp }[] = [
  { kind: 'literal', pattern: /"([^"\n]{2,200})"|“([^”\n]{2,200})”|(?<=[\s(])'([^'\n]{2,200})'(?=[\s.,;:)]|$)/g },
  { kind: 'name', pattern: /(?<![\w.])(?:\/[\w.*-]+)+|(?<![\w./-])(?:[\w.*-]+\/)+[\w.*-]*\.\w+/g },
  { kind: 'id', pattern: /(?<=\b(?:pid|ppid|uid|gid|port|process id|parent pid)s? (?:is |was |=)?#?)\d+\b/gi },
  { kind: 'name', pattern: /(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])/g },
  { kind: 'name', pattern: /(?<![\w.])v?\d+\.\d+\.\d+[\w.-]*\w/g },
  { kind: 'name', pattern: new RegExp(`(?<![\\w./-])[\\w-]+(?:\\.[\\w-]+)*\\.(?:${extensions})(?![\\w-])`, 'gi') },
  // An address, or a name with a number in it: host-osl-1, prp_01m8…, a commit.
  { kind: 'name', pattern: /(?<![\w.-])[a-z][a-z0-9]*(?:[-_.:@][a-z0-9]+)+(?![\w-])/gi },
  { kind: 'name', pattern: /(?<![\w./-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])/gi },
]

/** What a text names: resources, files, addresses, commits, numbers of processes. `known` are names of rows that have no such form. */
export function namesIn(text: string, known: readonly string[]): Name[] {
  const found: Name[] = []
  const take = (name: Name) => {
    if (!found.some(({ start, end }) => start < name.end && end > name.start)) found.push(name)
  }
  for (const { kind, pattern } of patterns) {
    for (const match of text.matchAll(pattern)) {
      const whole = match[0]
      // A name of words alone, as left-over or live-migrate, is a word, and a clock time is not a name.
      if (kind === 'name' && !/\d/.test(whole) && !/[/@]|\.\w+$/.test(whole)) continue
      if (
        kind === 'name' &&
        (/^\d+(?:[-.:]\d+)*$/.test(whole) ? !/^\d+(?:\.\d+){2,3}(?::\d+)?$/.test(whole) : isMeasure(whole))
      )
        continue
      take({ text: whole.replace(/^["'“]|["'”]$/g, ''), start: match.index, end: match.index + whole.length, kind })
    }
  }
  for (const name of known) {
    const pattern = new RegExp(`(?<![\\w-])${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w-])`, 'gi')
    for (const match of text.matchAll(pattern))
      take({ text: match[0], start: match.index, end: match.index + match[0].length, kind: 'name' })
  }
  return found.sort((a, b) => a.start - b.start)
}

/** 524,288-byte, 5-minute, e.g., sha256: no names. */
function isMeasure(word: string): boolean {
  return /^\d[\d,.]*-?[a-z%]+$/i.test(word) || /^(?:e\.g|i\.e|a\.m|p\.m|u\.s)\.?$/i.test(word)
}

/** Does a folded text hold this name as a whole: host-osl-1 is not in host-osl-10. A commit may be cut short. */
export function holdsName(folded: string, name: string): boolean {
  const [wanted, ...glob] = foldText(name)
    .replace(/[.:]+$/, '')
    .split('*') as [string, ...string[]]
  const isCommit = /^[0-9a-f]{7,}$/.test(wanted)
  for (let at = folded.indexOf(wanted); at >= 0; at = folded.indexOf(wanted, at + 1)) {
    const before = folded[at - 1] ?? ' '
    const after = folded[at + wanted.length] ?? ' '
    if (/[a-z0-9_-]/.test(before)) continue
    if (glob.length > 0) return true
    if (isCommit ? /[0-9a-f]/.test(after) || !/[a-z0-9_-]/.test(after) : !/[a-z0-9_-]/.test(after)) return true
  }
  return false
}
