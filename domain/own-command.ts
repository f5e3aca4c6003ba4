/** First words of Nightshift's commands. Texts always write a command as `nightshift doctor`. */
export const ownCommands = [
  ...[
    'start',
    'status',
    'usage',
    'reports',
    'login',
    'logout',
    'doctor',
    'migrate',
    'setup',
    'incidents',
    'expectations',
  ],
  ...[
    'home',
    'morning',
    'hand-over',
    'follow-ups',
    'search',
    'alerts',
    'approvals',
    'act',
    'ask',
    'config',
    'destinations',
    'inventory',
    'resources',
    'changes',
  ],
  ...['model', 'sources', 'knowledge', 'prompt', 'jobs', 'operators', 'audit', 'verify', 'tokens', 'ingest', 'judge'],
  ...[
    'policy',
    'undo',
    'who-may',
    'placement',
    'mesh',
    'agent',
    'backup',
    'restore',
    'retention',
    'trust',
    'stop',
    'resume',
    'lab',
    'completion',
    'help',
    'man',
  ],
] as const

/** The words before a command in a checkout, in which no program is called `nightshift`. */
export const inCheckout = 'npm run -s nightshift --'

/**
 * Returns what people type before a command: `NIGHTSHIFT_COMMAND` if an image sets it, the npm
 * command if npm started this process, otherwise `nightshift`.
 */
export function commandPrefix(environment: Record<string, string | undefined>): string {
  if (environment.NIGHTSHIFT_COMMAND) return environment.NIGHTSHIFT_COMMAND
  return ['start', 'nightshift', 'lab'].includes(environment.npm_lifecycle_event ?? '') ? inCheckout : 'nightshift'
}

const named = new RegExp(`(?<![\\w./:@-])nightshift (?=(?:${ownCommands.join('|')})\\b)`, 'g')

/** Rewrites each command in a text to the form that people type here. */
export function spellCommands(text: string, prefix: string): string {
  return prefix === 'nightshift' ? text : text.replace(named, `${prefix} `)
}
