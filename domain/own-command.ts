/** First words of our commands. Texts write `nightshift doctor`, wherever they are shown. */
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

/** How the command is called where it is not called `nightshift`. */
export const inCheckout = 'npm run -s nightshift --'

/**
 * Words that people type before a command's, by this environment: an image's
 * (`NIGHTSHIFT_COMMAND`), npm's where npm started this, else the name from package or link.
 */
export function commandPrefix(environment: Record<string, string | undefined>): string {
  if (environment.NIGHTSHIFT_COMMAND) return environment.NIGHTSHIFT_COMMAND
  return ['start', 'nightshift', 'lab'].includes(environment.npm_lifecycle_event ?? '') ? inCheckout : 'nightshift'
}

const named = new RegExp(`(?<![\\w./:@-])nightshift (?=(?:${ownCommands.join('|')})\\b)`, 'g')

/** The text with each command as it is typed in that place. */
export function spellCommands(text: string, prefix: string): string {
  return prefix === 'nightshift' ? text : text.replace(named, `${prefix} `)
}
