import type { Command } from 'commander'
import { quote } from '../../safety/command/quote.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json } from '../terminal.ts'
import { type ADevice, aDevice } from './a-device.ts'

export function listDevices(parent: Command): void {
  asking(parent.command('devices').description('devices, what each executes for, and how it is'))
    .addHelpText('after', '\nExample:\n  nightshift mesh devices')
    .action(async (options: Asking) => {
      const { api } = connected(options)
      const devices = await listAll(api, '/api/v1/devices', aDevice)
      if (options.json) return json(devices)
      const rows = devices.map((device) => [
        inert(device.id),
        inert(`${device.resource.kind}:${device.resource.id}`),
        device.mode,
        String(device.tools.length),
        inert(stateOf(device)),
      ])
      data(table(['NAME', 'FOR', 'MODE', 'TOOLS', 'STATE'], rows, 4))
      for (const { id, terms } of devices)
        for (const words of terms.root_reads ?? [])
          data(inert(`root looks on ${id} with: sudo -n ${words.map(quote).join(' ')}`))
    })
}

function stateOf(device: ADevice): string {
  const { revokedAt, enrolledAt, enabled, manifestExpiresAt, health, healthProblem } = device
  if (revokedAt) return 'revoked'
  if (!enrolledAt) return 'not enrolled'
  if (!enabled) return 'switched off'
  if (manifestExpiresAt && Date.parse(manifestExpiresAt) <= Date.now()) return 'its manifest has expired'
  if (healthProblem) return `no answer: ${healthProblem}`
  if (!health) return 'not asked yet'
  return health.status === 'ready' ? 'ready' : `refuses: ${health.reason ?? 'it does not say why'}`
}
