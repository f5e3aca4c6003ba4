import type { Command } from 'commander'
import { quote } from '../../safety/command/quote.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson } from '../terminal.ts'
import { type ApiDevice, apiDevice } from './a-device.ts'

export function addDevicesCommand(parent: Command): void {
  withConnectionOptions(parent.command('devices').description('devices, what each executes for, and how it is'))
    .addHelpText('after', '\nExample:\n  nightshift mesh devices')
    .action(async (options: ConnectionOptions) => {
      const { api } = connect(options)
      const devices = await listAll(api, '/api/v1/devices', apiDevice)
      if (options.json) return printJson(devices)
      const rows = devices.map((device) => [
        inert(device.id),
        inert(`${device.resource.kind}:${device.resource.id}`),
        device.mode,
        String(device.tools.length),
        inert(describeState(device)),
      ])
      print(formatTable(['NAME', 'FOR', 'MODE', 'TOOLS', 'STATE'], rows, 4))
      for (const { id, terms } of devices)
        for (const words of terms.root_reads ?? [])
          print(inert(`root looks on ${id} with: sudo -n ${words.map(quote).join(' ')}`))
    })
}

function describeState(device: ApiDevice): string {
  const { revokedAt, enrolledAt, enabled, manifestExpiresAt, health, healthProblem } = device
  if (revokedAt) return 'revoked'
  if (!enrolledAt) return 'not enrolled'
  if (!enabled) return 'switched off'
  if (manifestExpiresAt && Date.parse(manifestExpiresAt) <= Date.now()) return 'its manifest has expired'
  if (healthProblem) return `no answer: ${healthProblem}`
  if (!health) return 'not asked yet'
  return health.status === 'ready' ? 'ready' : `refuses: ${health.reason ?? 'it does not say why'}`
}
