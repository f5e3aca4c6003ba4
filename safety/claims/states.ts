import { holdsName, type Name } from './actions.ts'
import { type ClaimProblem, problem, type QuotePlace, said } from './quote.ts'
import type { Clause } from './text.ts'

/**
 * Words of a state, each with the words in a quote that prove it: affirmed (`+`) or denied (`-`). A
 * key with a negative value, such as `running: false`, counts as denied.
 */
const shownBy: Record<string, string> = {
  nominal: '+nominal +healthy',
  healthy: '+nominal +healthy',
  unhealthy: '+unhealthy +degraded +critical -healthy -nominal',
  degraded: '+degraded',
  critical: '+critical',
  down: '+down +dead +unreachable +offline +stopped -running -up -reachable -alive',
  dead: '+dead',
  alive: '+alive +live +running',
  up: '+up +running +online +alive +live +nominal +healthy',
  live: '+live',
  running: '+running +runs +run +active -stopped',
  runs: '+running +runs +run +active',
  stopped: '+stopped +exited +dead +down +gone +inactive -running -active',
  online: '+online +up +running',
  offline: '+offline +down -online',
  reachable: '+reachable -unreachable',
  unreachable: '+unreachable -reachable -answer',
  active: '+active +running',
  inactive: '+inactive +dead -active',
  draining: '+draining',
  firing: '+firing',
  resolved: '+resolved',
  responding: '+responding +responds +answers +200',
  unresponsive: '+unresponsive +timeout -answer -respond -responding',
  operational: '+nominal +operational +healthy',
  recovered: '+nominal +recovered +healthy',
  ready: '+ready',
  pending: '+pending',
  crashed: '+crashed +dead +exited',
  enabled: '+enabled',
  disabled: '+disabled -enabled',
  mounted: '+mounted',
  locked: '+locked',
  synced: '+synced',
  drifted: '+drifted +drift',
  idle: '+idle',
  expired: '+expired',
  full: '+full +pressure +%',
  forbidden: '+forbidden',
  refused: '+refused',
  taken: '+taken +use',
  throttled: '+throttled +throttling',
  evicted: '+evicted',
  failed: '+failed +failing +error +fatal +fail',
  failing: '+failed +failing +error +fatal +fail',
}

/** Words that prove a denied state: running:false, or stopped, shows "not running". */
const opposites: Record<string, string> = {
  nominal: '+degraded +critical +unhealthy +dead +down',
  healthy: '+degraded +critical +unhealthy +dead +down',
  degraded: '+nominal +healthy',
  critical: '+nominal +healthy +degraded',
  running: '+stopped +exited +dead +down +gone',
  runs: '+stopped +exited +dead +down +gone',
  reachable: '+unreachable',
  down: '+up +running +nominal',
  up: '+down +dead +offline',
  active: '+inactive +dead',
  enabled: '+disabled',
  firing: '+resolved',
  ready: '+pending',
  responding: '+unresponsive +timeout',
  online: '+offline +down',
}

const words = Object.keys(shownBy).join('|')
const wordPattern = new RegExp(`(?<![\\w-])(?:(back) to )?(${words})(?![\\w-])`, 'g')
const denial = /(?:\bnot|\bno longer|\bnever|n't|\bcannot|\bneither|\bnor|\bno|\bwithout|\bnone)(?: (?:[\w-]+)){0,2} ?$/

type StateWord = { word: string; isDenied: boolean; at: number }

/**
 * Lists the state words of a folded clause. A word before its noun counts too, as in "the running
 * process".
 */
export function statesIn(clause: string): StateWord[] {
  return [...clause.matchAll(wordPattern)].map((match) => ({
    word: match[2] as string,
    isDenied: denial.test(clause.slice(0, match.index)) || /^\s*(?:neither|none|no|not every|not all)\b/.test(clause),
    at: match.index,
  }))
}

/** A line of a row with its key and value. The piece from `from` to `to` is quoted. */
type QuotedLine = { key: string; line: string; value: unknown; from: number; to: number }

/**
 * Whether this line, quoted from `from` to `to`, shows the state. Words before the quoted piece may
 * deny the state.
 */
function showsState(state: StateWord, quoted: QuotedLine): boolean {
  const own = shownBy[state.word] as string
  const wanted = state.isDenied ? [...flipped(own), ...signed(opposites[state.word] ?? '')] : signed(own)
  return wanted.some(([sign, word]) => shows(sign, word, quoted))
}

type Sign = '+' | '-'

function signed(text: string): [Sign, string][] {
  return text
    .split(' ')
    .filter(Boolean)
    .map((each) => [each[0] as Sign, each.slice(1)])
}

function flipped(text: string): [Sign, string][] {
  return signed(text).map(([sign, word]) => [sign === '+' ? '-' : '+', word])
}

function shows(sign: Sign, word: string, { key, line, value, from, to }: QuotedLine): boolean {
  if (typeof value === 'boolean') return key === word && value === (sign === '+')
  // Accepts the kernel's letter for a running process.
  if (/^stat(?:e|us)?$/.test(key) && word === 'running' && /^r[sl<+]*$/.test(line)) return sign === '+'
  if (word === '%') return sign === '+' && /\d ?%/.test(line.slice(from, to))
  if (!line.includes(word)) return false
  const pattern = new RegExp(`(?<![\\w-])${word}${word === 'answer' ? '(?:s|ed)?' : ''}(?![\\w-])`, 'g')
  for (const match of line.matchAll(pattern)) {
    if (match.index < from || match.index + match[0].length > to) continue
    const isTurned = /^ ?[:=] ?(?:false|no|none|off|0)(?![\w.])/.test(line.slice(match.index + match[0].length))
    if ((denial.test(line.slice(0, match.index)) || isTurned) === (sign === '-')) return true
  }
  return false
}

const universal = /\b(?:all|every|each|both|none|neither|every(?:thing|one|where)|nothing)\b/

/**
 * Finds the first state of a clause that these places do not show for its subject. `shown`: state
 * words that count as shown without a quote.
 */
export function statesProblem(
  clause: Clause,
  places: readonly QuotePlace[],
  isLoose: boolean,
  shown: string,
): ClaimProblem | null {
  for (const state of statesIn(clause.text)) {
    if (isDescribing(clause.text, state) || shown.split(' ').includes(state.word)) continue
    const showing = places.filter((place) => showsAt(place, state))
    const subjects = subjectsOf(clause, state)
    if (showing.length === 0) return problem('STATE_NOT_SHOWN', `no quote says ${said(spoken(state))}`)
    for (const subject of subjects) {
      if (showing.some(({ about }) => holdsName(about, subject.text))) continue
      return problem('STATE_NOT_SHOWN', `no quote says ${said(spoken(state))} of ${said(subject.text)}`)
    }
    const about =
      subjects.length === 0
        ? showing
        : showing.filter((place) => subjects.some(({ text }) => holdsName(place.about, text)))
    if (!isLoose && universal.test(clause.text) && !isForAll(clause, about, state)) {
      return problem('NOT_ALL', `the quotes do not show all of them ${said(spoken(state))}`)
    }
  }
  return null
}

const spoken = ({ word, isDenied }: StateWord) => (isDenied ? `not ${word}` : word)

/**
 * Whether a state word only describes a noun and claims no state: critical alert, running total,
 * live migrations.
 */
function isDescribing(text: string, { word, at }: StateWord): boolean {
  const behind = text.slice(at + word.length)
  return (
    /^(?:-| (?:alerts?|severity|incident|total|log|config\w*|migrations?|process space))/.test(behind) ||
    (word === 'live' && !/\b(?:is|are|was|were) $/.test(text.slice(0, at))) ||
    (word === 'up' &&
      /\w(?:ing|s|ed|e|t|k|ng|n) $/.test(text.slice(0, at)) &&
      !/\b(?:is|are|was|were|has|be|been) $/.test(text.slice(0, at))) ||
    (word === 'failed' && /^ over/.test(behind)) ||
    (word === 'up' && /^ (?:for|since|to) /.test(behind))
  )
}

/** Whether a place shows a state: by its words, by a field with that name, or by an exit code. */
export function showsAt(place: QuotePlace, state: StateWord): boolean {
  const key = place.leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''
  const value = place.leaf.value
  if (
    /^run/.test(state.word) &&
    !state.isDenied &&
    /(?:^|[\s[,/])(?:ps|pgrep|top|proc_list)(?![\w-])/.test(place.part.head)
  )
    return true
  if (/^exit_?code$/.test(key) && /^fail/.test(state.word)) return (value !== 0) === !state.isDenied
  return showsState(state, { key, line: place.line, value, from: place.from, to: place.to })
}

/**
 * Lists the subjects of a state: the names side by side before the state, otherwise the names after
 * it, otherwise the names of the clause.
 */
function subjectsOf(clause: Clause, state: StateWord): Name[] {
  const at = clause.start + state.at
  const before = clause.groups.filter((group) => (group[0] as Name).start < at)
  const first = before[0]
  if (first) return first.filter(({ kind }) => kind !== 'literal')
  const behind = clause.groups.find((group) => (group[0] as Name).start > at)
  return (behind ?? clause.carried).filter(({ kind }) => kind !== 'literal')
}

/**
 * Whether "all", "both" or "every" is true: a quoted line says so, or each element of the list
 * shows the state. For "both", two elements must show the state.
 */
function isForAll({ text, groups }: Clause, showing: readonly QuotePlace[], state: StateWord): boolean {
  if (showing.some(({ line }) => /\b(?:all|every|each|both|no|none)\b/.test(line))) return true
  const [first] = showing
  if (!first) return false
  const items = new Set(showing.map(({ item, part }) => `${part.seq}:${item.start}`))
  if (/\b(?:both|neither)\b/.test(text)) return items.size >= 2
  return first.item.list ? isForEach(showing, state) : groups.some((group) => group.length > 1)
}

/** Whether every element of the list around the first place has the state. */
export function isForEach([first]: readonly QuotePlace[], state: StateWord): boolean {
  const list = first?.item.list
  if (!first || !list) return false
  const { leaves, text: whole } = first.part.document()
  return list.of.every((item) =>
    leaves.some((leaf) => {
      if (leaf.item !== item) return false
      return leaf.lines.some(({ start, end }) =>
        showsAt({ ...first, leaf, item, line: whole.slice(start, end), from: 0, to: end - start }, state),
      )
    }),
  )
}
