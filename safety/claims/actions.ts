import { foldText } from './quote.ts'

/**
 * Verbs of change, grouped by their action. `forms` report that the action was done; `stems` name
 * the action in a tool, argument or answer.
 */
const groups = [
  [
    'restarted rebooted bounced reloaded relaunched power-cycled cycled continued',
    'restart reboot bounc reload relaunch cycl continu start',
  ],
  ['started booted launched resumed brought', 'start boot launch resum continu bring restart runs'],
  ['stopped killed ended terminated shut halted', 'stop kill end term quit shut halt'],
  [
    'moved migrated evacuated drained relocated rebalanced emptied transferred',
    'mov migrat evacuat drain relocat rebalanc empt transfer start',
  ],
  [
    'removed deleted cleared cleaned purged truncated freed dropped pruned rotated vacuumed',
    'remov delet rm clear clean purg truncat free drop prun rotat vacuum',
  ],
  [
    'written wrote updated changed edited replaced patched configured reconfigured set',
    'writ updat chang edit replac patch configur set restor appl',
  ],
  ['reverted undone restored', 'revert restor undo roll reset'],
  ['committed', 'commit'],
  ['pushed', 'push'],
  ['installed upgraded downgraded deployed redeployed', 'install upgrad downgrad deploy'],
  ['converged applied re-applied', 'converg appl'],
  [
    'scaled resized expanded increased reduced decreased extended',
    'scal resiz expand increas reduc decreas extend grow',
  ],
  [
    'cordoned isolated fenced blocked throttled disabled demoted unmounted',
    'cordon isolat fenc block throttl disabl demot unmount',
  ],
  [
    'uncordoned enabled unblocked promoted mounted remounted rerouted switched reassigned',
    'uncordon enabl unblock promot mount rerout switch reassign',
  ],
  ['created added', 'creat add'],
  ['flushed reset reseated', 'flush reset reseat'],
  ['failed over', 'failover promot'],
  ['rolled back', 'revert restor undo roll'],
  ['taken back', 'revert restor undo roll'],
  ['took back', 'revert restor undo roll'],
  ['silenced muted acknowledged snoozed', 'silenc mut acknowledg snooz'],
  ['evicted rescheduled recreated', 'evict reschedul recreat delet'],
  ['paused suspended', 'paus suspend stop'],
  ['backed up', 'backup back'],
] as const
/** Verbs that fit any write. */
const general = 'repaired fixed remediated mitigated corrected executed performed carried-out done'
/**
 * Verbs that also describe an event without an actor: a process stopped, its lag dropped. These
 * verbs count as an action only with an actor, or in the passive.
 */
const happens = new Set(
  'written restarted rebooted started stopped ended resumed continued moved dropped cleared freed changed updated created added increased reduced decreased blocked enabled disabled mounted switched set reset rotated done applied brought replaced deployed extended expanded restored recovered'.split(
    ' ',
  ),
)
/** Verbs that also describe a lasting state: is cordoned, is disabled. */
const lasting = new Set(
  'cordoned isolated fenced throttled unmounted paused suspended silenced muted installed'.split(' '),
)
const verbs = [...groups.flatMap(([forms]) => forms.split(' ')), ...general.split(' ')]
const multi = ['failed over', 'rolled back', 'backed up', 'carried out', 'taken back', 'took back']
const verbPattern = new RegExp(
  `(?<![\\w-])(${[...multi, ...verbs.filter((verb) => !['failed', 'over', 'rolled', 'backed', 'up', 'back', 'taken', 'took', 'carried-out'].includes(verb))].join('|')})(?![\\w-])`,
  'g',
)

const ourselves =
  /\b(?:i|we|i've|we've|nightshift|the agent|this (?:run|investigation|agent)|converg(?:e|ing)|(?:the|an?|this|that|our|my|approved|executed)(?: [\w-]+)? (?:plan|converge|repair|restart|kill|command|commit|write|fix|revert|rollback|migration)|the plan|restarting|killing|reverting|draining)\b/
const passive =
  /\b(?:was|were|been|being|got|is|are|be)(?: (?:not|never|now|then|also|just|already|again|successfully|safely|gracefully|manually|\w+ly))* ?$/
const denied =
  /(?:\bnot|\bnever|n't|\bwithout|\bnone|\bnothing(?: (?:was|is|has been))?|\bno [\w-]+ (?:was|were|is|are|has been|have been)|\bnobody)(?: (?:been|yet|be|\w+ly))* ?$/
const supposed =
  /\b(?:should|must|will|would|could|can|may|might|shall|needs? to|to be|to have|if|unless|until|going to|about to|plan(?:s|ned)? to|asked? to|proposed? to|tried to|attempt(?:ed)? to|before it)\b/
const others =
  'systemd|kernel|oom killer|operators?|somebody|someone|admins?|engineers?|cron|kubernetes|kubelet|watchdog|scheduler|logrotate|docker|supervisor\\w*|tenant|customer|owner|deploy'
const otherSubject = new RegExp(`\\b(?:${others}) (?:(?:has|had|have|then|also|\\w+ly) )*$`)
/** Verbs for acts that change nothing. */
const harmless = new Set(
  'checked looked verified confirmed observed queried inspected noticed compared searched listed reviewed examined considered escalated reported asked waited tried needed wanted noted concluded assumed decided planned proposed recorded investigated requested expected measured traced followed used received opened ended called visited learned suspected believed ignored'.split(
    ' ',
  ),
)
const ownVerb =
  /\b(?:i|we|i've|we've|nightshift|the agent)(?:'ve| have| has| had)?(?: (?:then|also|just|already|now|\w+ly))* ([a-z]{2,}ed)\b|\b(?:was|were|been|got|is|are)(?: \w+ly)* ([a-z]{2,}(?:ed|n))\b(?=[^,;]{0,40}\bby (?:us|me|nightshift|the agent|this (?:run|investigation|agent))\b)/g

/**
 * Matches a verb that describes the noun before it, which is then no action: "rotated logs filled
 * it".
 */
const describesNoun = /^ [a-z][a-z-]* (?:[a-z]{2,}ed|was|were|is|are|had|have)\b/

export type Action = { verb: string; isOurs: boolean; isDenied: boolean }

/** Lists the actions that a clause reports as done. Advice and possibilities do not count. */
export function actionsIn(clause: string): Action[] {
  return [...knownActions(clause), ...ownActions(clause), ...namedActions(clause)]
}

/** Nouns and gerunds that name an action: "after a restart", "restarting it did not help". */
const nouns: Record<string, string> = {
  restart: 'restarted',
  restarting: 'restarted',
  reboot: 'rebooted',
  converge: 'converged',
  converging: 'converged',
  rollback: 'rolled back',
  revert: 'reverted',
  reverting: 'reverted',
  failover: 'failed over',
  migrating: 'migrated',
  killing: 'killed',
  draining: 'drained',
  clearing: 'cleared',
  deleting: 'deleted',
  removing: 'removed',
}
const nounPattern = new RegExp(
  `(?:\\b(?:after|by|since|despite)(?: (?:a|an|the|another|one|its))?(?: second| third)? |^\\s*(?:a |an |the )?)(${Object.keys(nouns).join('|')})(?![\\w-])`,
  'g',
)

/** Matches "took Deploy 51 back". */
const tookBack = /\b(?:took|taken) (?:[^,;]{1,40}) back\b/

function namedActions(clause: string): Action[] {
  const back = tookBack.exec(clause)
  const isOurs = back !== null && ourselves.test(clause.slice(0, back.index))
  const taken: Action[] = back
    ? [{ verb: 'took back', isOurs, isDenied: denied.test(clause.slice(0, back.index)) }]
    : []
  return [...taken, ...namedByNoun(clause)]
}

function namedByNoun(clause: string): Action[] {
  return [...clause.matchAll(nounPattern)].flatMap((match) => {
    const isSubject = !/^(?:after|by|since|despite)/.test(match[0])
    const behind = clause.slice(match.index + match[0].length)
    if (supposed.test(clause) || (isSubject && !/\b(?:did|does|helped|worked|failed|changed|brought)\b/.test(behind)))
      return []
    return [
      { verb: nouns[match[1] as string] as string, isOurs: false, isDenied: denied.test(clause.slice(0, match.index)) },
    ]
  })
}

/**
 * Lists acts that the text claims for this investigation with a verb that is in no group of verbs.
 * Verbs of reading do not count.
 */
function ownActions(clause: string): Action[] {
  return [...clause.matchAll(ownVerb)].flatMap((match) => {
    const verb = (match[1] ?? match[2]) as string
    if (harmless.has(verb) || verbs.includes(verb) || supposed.test(clause.slice(0, match.index))) return []
    return [
      {
        verb,
        isOurs: true,
        isDenied:
          denied.test(clause.slice(0, match.index + match[0].length - verb.length)) ||
          /^ (?:nothing|nobody|none|no\b)/.test(clause.slice(match.index + match[0].length)),
      },
    ]
  })
}

function knownActions(clause: string): Action[] {
  return [...clause.matchAll(verbPattern)].flatMap((match) => {
    const verb = match[1] as string
    const before = clause.slice(0, match.index)
    const behind = clause.slice(match.index + verb.length)
    if (supposed.test(before)) return []
    const isDenied = denied.test(before) || /^ (?:nothing|nobody|none|no\b)/.test(behind)
    const isFirst =
      /^\s*(?:(?:done|ok|then|and|also|successfully|so)[:,-]? )*$/.test(before) &&
      /^ [\w§]/.test(behind) &&
      !describesNoun.test(behind)
    const isOurs =
      !otherSubject.test(before) && (ourselves.test(before) || (isFirst && !/^ (?:by|at|on|in|since)\b/.test(behind)))
    const isPassive = passive.test(before)
    // Skips a verb that describes the noun after it: "the restored file", "a stopped process".
    const describes =
      !isPassive &&
      !isOurs &&
      /\b(?:the|a|an|of|this|that|no|any|already|recently|newly)(?: [\w-]+)? $/.test(before) &&
      /^ [a-z§]/.test(behind)
    // Skips a present state ("is stopped"), which is not an action ("was stopped").
    const isState =
      isPassive && (happens.has(verb) || lasting.has(verb)) && /\b(?:is|are)(?: now| still)? $/.test(before)
    if (describes || (isState && !isOurs) || (happens.has(verb) && !isPassive && !isOurs)) return []
    return [{ verb, isOurs, isDenied }]
  })
}

/** Whether the verb judges a write instead of naming it, such as repaired or fixed. */
export function isGeneralVerb({ verb }: Pick<Action, 'verb'>): boolean {
  return general.split(' ').includes(verb) || verb === 'carried out'
}

/** Whether a group of verbs contains this verb, so that the names of its writes are known. */
export function isKnownVerb(verb: string): boolean {
  return groups.some(([forms]) => forms === verb || forms.split(' ').includes(verb))
}

/** Whether the folded text of a write or log reports this verb. A general verb fits all writes. */
export function isVerbOf(verb: string, folded: string, isWrite: boolean): boolean {
  if (isGeneralVerb({ verb })) return isWrite || folded.includes(verb.slice(0, 5))
  const stems = groups
    .filter(([forms]) => forms === verb || forms.split(' ').includes(verb))
    .flatMap(([, all]) => all.split(' '))
  const words = foldText(folded).split(/[^a-z0-9]+/)
  if (stems.length === 0) stems.push(verb.replace(/(?:ed|n)$/, '').slice(0, 6))
  return [...stems, ...(verb.endsWith(' back') ? ['restor', 'revert', 'writ'] : [])].some((stem) =>
    words.some((word) => word.startsWith(stem)),
  )
}

/** Lists the past forms of the verb and its synonyms, as reports use them: restarted, rebooted. */
export function pastFormsOf(verb: string): string[] {
  const own = groups.filter(([forms]) => forms === verb || forms.split(' ').includes(verb))
  return [...new Set([verb, ...own.flatMap(([forms]) => (forms === verb ? [forms] : forms.split(' ')))])]
}

/** Lists all forms of the verb, as records of events use them: Revert, restarting, killed. */
export function anyFormsOf(verb: string): string[] {
  const own = groups.filter(([forms]) => forms === verb || forms.split(' ').includes(verb))
  const stems = own.flatMap(([, all]) => all.split(' ').filter((stem) => stem !== 'roll'))
  return [...pastFormsOf(verb), ...stems.map((stem) => `${stem}(?:e|s|es|ing|ed)?`)]
}

/** Whether the clause states that the action failed. */
export function saysFailed(clause: string): boolean {
  return /\b(?:fail(?:ed|s|ure)?|did not|not every|not all|stays?|didn't|could not|couldn't|without effect|no effect|not held|did nothing|in vain|unsuccessful\w*)\b/.test(
    clause,
  )
}

/**
 * A name in a claim's text, with its place. `literal`: the name is in quotes. `id`: the name is a
 * number after a word such as pid.
 */
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
  // Matches an address, or a name with a number in it: host-osl-1, prp_01m8…, a commit.
  { kind: 'name', pattern: /(?<![\w.-])[a-z][a-z0-9]*(?:[-_.:@][a-z0-9]+)+(?![\w-])/gi },
  // Matches words that only programs use: env=prod, max_connections, targetPort.
  { kind: 'literal', pattern: /(?<![\w./-])[a-z][\w.-]*=[\w.-]*\w|(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w-])/gi },
  { kind: 'literal', pattern: /(?<![\w./-])[a-z]{2,}[A-Z][a-z]\w*(?![\w-])/g },
  { kind: 'name', pattern: /(?<![\w./-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])/gi },
]

/**
 * Lists the names in a text: resources, files, addresses, commits, process numbers. `known`: names
 * in rows that do not have the form of a name.
 */
export function namesIn(text: string, known: readonly string[]): Name[] {
  const found: Name[] = []
  const take = (name: Name) => {
    if (!found.some(({ start, end }) => start < name.end && end > name.start)) found.push(name)
  }
  for (const { kind, pattern } of patterns) {
    for (const match of text.matchAll(pattern)) {
      const whole = match[0]
      // Skips a hyphenated word without a number (left-over, live-migrate) and a clock time, which
      // are not names.
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

/** Whether a word is a measure or an abbreviation: 524,288-byte, 5-minute, e.g., sha256. */
function isMeasure(word: string): boolean {
  return /^\d[\d,.]*-?[a-z%]+$/i.test(word) || /^(?:e\.g|i\.e|a\.m|p\.m|u\.s)\.?$/i.test(word)
}

/**
 * Whether a folded text contains this whole name: host-osl-1 is not in host-osl-10. A commit may be
 * shortened.
 */
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
