import type { Command } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { json, note } from '../terminal.ts'

export function revokeDevice(parent: Command): void {
  asking(
    parent
      .command('revoke')
      .description('end a device for good: it is asked nothing more, and its name never comes back')
      .argument('<name>', 'of the device')
      .option('--reason <text>', 'why, for the audit'),
  )
    .addHelpText('after', '\nExample:\n  nightshift mesh revoke node-osl-1 --reason stolen')
    .action(async (name: string, options: Asking & { reason?: string }) => {
      const { api } = connected(options)
      const path = `/api/v1/devices/${encodeURIComponent(name)}/revoke`
      const answer = await api.post(path, { reason: options.reason ?? null })
      const { revoked } = z.looseObject({ revoked: z.boolean() }).parse(answer)
      if (options.json) return json(answer)
      if (!revoked) throw new CommandFailed('conflict', `${inert(name)} was revoked before.`)
      note(`${inert(name)} is asked nothing more. Stop its agent there: what it was told before, it may still know.`)
    })
}
