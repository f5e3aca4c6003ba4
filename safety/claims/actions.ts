import { foldText } from './quote.ts'

/**
 * Verbs of change, by their deed. `forms` say it was done; `stems` are its name in a tool, argument
 * or answer.
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
/** What any write is called. */
const general = 'repaired fixed remediated mitigated corrected executed performed carried-out done'
/**
 * Happens by itself too: a process stopped, its lag dropped. An action only with an actor, or in
 * the passive.
 */
const happens = new Set(
  'written restarted rebooted started stopped ended resumed continued moved dropped cleared freed changed updated created added increased reduced decreased blocked enabled disabled mounted switched set reset rotated done applied brought replaced deployed extended expanded restored recovered'.split(
    ' ',
  ),
)
/** As a state it lasts: is cordoned, is disabled. */
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
/** What one does without changing anything. */
const harmless = new Set(
  'checked looked verified confirmed observed queried inspected noticed compared searched listed reviewed examined considered escalated reported asked waited tried needed wanted noted concluded assumed decided planned proposed recorded investigated requested expected measured traced followed used received opened ended called visited learned suspected believed ignored'.split(
    ' ',
  ),
)
const ownVerb =
  /\b(?:i|we|i've|we've|nightshift|the agent)(?:'ve| have| has| had)?(?: (?:then|also|just|already|now|\w+ly))* ([a-z]{2,}ed)\b|\b(?:was|were|been|got|is|are)(?: \w+ly)* ([a-z]{2,}(?:ed|n))\b(?=[^,;]{0,40}\bby (?:us|me|nightshift|the agent|this (?:run|investigation|agent))\b)/g

/** Rotated logs filled it: a verb behind its noun, so that the first word describes. */
const describesNoun = /^ [a-z][a-z-]* (?:[a-z]{2,}ed|was|were|is|are|had|have)\b/

export type Action = { verb: string; isOurs: boolean; isDenied: boolean }

/** Actions that a clause calls done; what should or could be done does not count. */
export function actionsIn(clause: string): Action[] {
  return [...knownActions(clause), ...ownActions(clause), ...namedActions(clause)]
}

/** Nouns and gerunds of what is done: after a restart, restarting it did not help. */
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

/** I took Deploy 51 back. */
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

/** Whatever else this investigation says that it did: any verb but those of looking. */
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
    // The restored file, a stopped process: what comes before its noun describes it.
    const describes =
      !isPassive &&
      !isOurs &&
      /\b(?:the|a|an|of|this|that|no|any|already|recently|newly)(?: [\w-]+)? $/.test(before) &&
      /^ [a-z§]/.test(behind)
    // Is stopped: how it is now. Was stopped: what somebody did.
    const isState =
      isPassive && (happens.has(verb) || lasting.has(verb)) && /\b(?:is|are)(?: now| still)? $/.test(before)
    if (describes || (isState && !isOurs) || (happens.has(verb) && !isPassive && !isOurs)) return []
    return [{ verb, isOurs, isDenied }]
  })
}

/** Repaired, fixed: what somebody makes of a write, and no name of one. */
export function isGeneralVerb({ verb }: Pick<Action, 'verb'>): boolean {
  return general.split(' ').includes(verb) || verb === 'carried out'
}

/** A verb of which it is known how a write of it is called. */
export function isKnownVerb(verb: string): boolean {
  return groups.some(([forms]) => forms === verb || forms.split(' ').includes(verb))
}

/** Whether the verb is what this folded text of a write or log tells. A general one fits all. */
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

/** The verb and its like as a report has them: restarted, rebooted. */
export function pastFormsOf(verb: string): string[] {
  const own = groups.filter(([forms]) => forms === verb || forms.split(' ').includes(verb))
  return [...new Set([verb, ...own.flatMap(([forms]) => (forms === verb ? [forms] : forms.split(' ')))])]
}

/** The verb in every form, as a record of events has it: Revert, restarting, killed. */
export function anyFormsOf(verb: string): string[] {
  const own = groups.filter(([forms]) => forms === verb || forms.split(' ').includes(verb))
  const stems = own.flatMap(([, all]) => all.split(' ').filter((stem) => stem !== 'roll'))
  return [...pastFormsOf(verb), ...stems.map((stem) => `${stem}(?:e|s|es|ing|ed)?`)]
}

/** Does the clause say of what was done that it did not work? */
export function saysFailed(clause: string): boolean {
  return /\b(?:fail(?:ed|s|ure)?|did not|not every|not all|stays?|didn't|could not|couldn't|without effect|no effect|not held|did nothing|in vain|unsuccessful\w*)\b/.test(
    clause,
  )
}

/**
 * A name in a claim's text, with its place. `literal`: in quotation marks; `id`: a number behind a
 * word such as pid.
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
  // An address, or a name with a number in it: host-osl-1, prp_01m8…, a commit.
  { kind: 'name', pattern: /(?<![\w.-])[a-z][a-z0-9]*(?:[-_.:@][a-z0-9]+)+(?![\w-])/gi },
  // What no sentence has but a program: env=prod, max_connections, targetPort.
  { kind: 'literal', pattern: /(?<![\w./-])[a-z][\w.-]*=[\w.-]*\w|(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w-])/gi },
  { kind: 'literal', pattern: /(?<![\w./-])[a-z]{2,}[A-Z][a-z]\w*(?![\w-])/g },
  { kind: 'name', pattern: /(?<![\w./-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])/gi },
]

/**
 * Names in a text: resources, files, addresses, commits, process numbers. `known`: names of rows
 * without such a form.
 */
export function namesIn(text: string, known: readonly string[]): Name[] {
  const found: Name[] = []
  const take = (name: Name) => {
    if (!found.some(({ start, end }) => start < name.end && end > name.start)) found.push(name)
  }
  for (const { kind, pattern } of patterns) {
    for (const match of text.matchAll(pattern)) {
      const whole = match[0]
      // A name of words alone, as left-over or live-migrate, is a word; a clock time is no name.
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

/**
 * Whether a folded text holds this name whole: host-osl-1 is not in host-osl-10. A commit may be
 * cut short.
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
