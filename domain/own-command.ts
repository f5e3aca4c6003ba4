/** The first words of our command. Texts write it as `nightshift doctor`, wherever they are shown. */
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
    'lab',
    'completion',
    'help',
    'man',
  ],
] as const

/** How the command is called where it is not called `nightshift`. */
export const inCheckout = 'npm run -s nightshift --'

/**
 * What a person types before the words of a command, in the place with this environment: what an image says of itself
 * (`NIGHTSHIFT_COMMAND`), npm where npm started this, else the name that a package or a link gives it.
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
