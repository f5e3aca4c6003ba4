import { spellCommands } from '../domain/own-command.ts'

let prefix = 'nightshift'

/** The session says it, and no page is drawn before there is one. */
export function learnPrefix(said: string): void {
  prefix = said
}

/** The text with our commands as typed where the API runs: checkout, package, container. */
export function spelled(text: string): string {
  return spellCommands(text, prefix)
}
