/**
 * Words of a state, and what may show each: words that stand where it is quoted, as they are (`+`) or denied (`-`). A key with
 * a yes or no behind it, as running:false, is its word denied.
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
  failed: '+failed +failing +error +fatal +fail',
  failing: '+failed +failing +error +fatal +fail',
}

/** The opposite that a denied word needs: not running is shown by running:false, or by stopped. */
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

export type StateWord = { word: string; isDenied: boolean; at: number }

/** The state words of a folded clause. A word in front of its noun, as the running process, counts like one behind. */
export function statesIn(clause: string): StateWord[] {
  return [...clause.matchAll(wordPattern)].map((match) => ({
    word: match[2] as string,
    isDenied: denial.test(clause.slice(0, match.index)),
    at: match.index,
  }))
}

/** A line of a row with its key and value, of which the piece from `from` to `to` is quoted. */
export type QuotedLine = { key: string; line: string; value: unknown; from: number; to: number }

/** Does this line, quoted from `from` to `to`, show the state? What stands before the quoted piece may deny it. */
export function showsState(state: StateWord, quoted: QuotedLine): boolean {
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
  // A kernel's letter for a process that runs.
  if (/^stat(?:e|us)?$/.test(key) && word === 'running' && /^r[sl<+]*$/.test(line)) return sign === '+'
  if (word === '%') return sign === '+' && /\d ?%/.test(line.slice(from, to))
  if (!line.includes(word)) return false
  const pattern = new RegExp(`(?<![\\w-])${word}${word === 'answer' ? '(?:s|ed)?' : ''}(?![\\w-])`, 'g')
  for (const match of line.matchAll(pattern)) {
    if (match.index < from || match.index + match[0].length > to) continue
    if (denial.test(line.slice(0, match.index)) === (sign === '-')) return true
  }
  return false
}
