import { spellCommands } from '../domain/own-command.ts'

let prefix = 'nightshift'

/**
 * Stores the prefix of commands, which the session contains. No page is drawn before the prefix is
 * known.
 */
export function learnPrefix(said: string): void {
  prefix = said
}

/**
 * Returns the text with nightshift commands as they are typed where the API runs: checkout,
 * package, container.
 */
export function spelled(text: string): string {
  return spellCommands(text, prefix)
}
