import type { Command } from 'commander'
import { z } from 'zod'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { printJson, printNote } from '../terminal.ts'

export function addRevokeCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('revoke')
      .description('end a device for good: it is asked nothing more, and its name never comes back')
      .argument('<name>', 'of the device')
      .option('--reason <text>', 'why, for the audit'),
  )
    .addHelpText('after', '\nExample:\n  nightshift mesh revoke node-osl-1 --reason stolen')
    .action(async (name: string, options: ConnectionOptions & { reason?: string }) => {
      const { api } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(name)}/revoke`
      const answer = await api.post(path, { reason: options.reason ?? null })
      const { revoked } = z.looseObject({ revoked: z.boolean() }).parse(answer)
      if (options.json) return printJson(answer)
      if (!revoked) throw new CommandFailed('conflict', `${inert(name)} was revoked before.`)
      printNote(
        `${inert(name)} is asked nothing more. Stop its agent there: what it was told before, it may still know.`,
      )
    })
}
