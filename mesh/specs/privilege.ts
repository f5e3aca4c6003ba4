/** A word as sudoers(5) takes it: `,`, `:`, `=` and `\` are escaped. */
const escapeWord = (word: string) => word.replace(/[,:=\\]/g, '\\$&')

/** The line of sudoers(5) that lets a user run exactly these commands as root, without a password. */
export function sudoersLine(user: string, ...commands: string[][]): string {
  return `${user} ALL=(root) NOPASSWD: ${commands.map((words) => words.map(escapeWord).join(' ')).join(', ')}`
}
