import { z } from 'zod'
import { redact } from '../../../safety/redact.ts'
import { stripText } from '../../../safety/strip.ts'
import type { DeviceCapability } from '../capability.ts'
import { ask, type Engine, lacksEngine } from '../engine.ts'
import { answered } from '../refused.ts'

const args = z.strictObject({ all: z.boolean().default(false) })

type Listed = {
  Id: string
  Names: string[]
  Image: string
  Command: string
  Created: number
  State: string
  Status: string
  Ports: { IP?: string; PrivatePort: number; PublicPort?: number; Type: string }[]
}

const most = 500

/** Containers that run, with `all` the stopped ones too: `{ containers: [{ id, name, image, command, state, status, created, ports }] }`. */
export const dockerList = (engine: Engine): DeviceCapability<z.infer<typeof args>> => ({
  capability: 'docker.container.list',
  args,
  lacks: () => lacksEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: ({ all }, { signal }) =>
    answered(signal, async () => {
      const listed = await ask<Listed[]>(engine, 'GET', `/containers/json?all=${all}`, signal)
      const containers = listed.slice(0, most).map((one) => ({
        id: one.Id.slice(0, 12),
        name: one.Names[0]?.replace(/^\//, '') ?? null,
        image: one.Image,
        command: redact(stripText(one.Command, { keepNewlines: false }))
          .slice(0, 300)
          .toWellFormed(),
        state: one.State,
        status: one.Status,
        created: new Date(one.Created * 1_000).toISOString(),
        ports: one.Ports.map(
          ({ IP, PrivatePort, PublicPort, Type }) =>
            `${PublicPort === undefined ? '' : `${IP ?? ''}:${PublicPort}->`}${PrivatePort}/${Type}`,
        ),
      }))
      return { ok: true, result: { containers, total: listed.length }, truncated: listed.length > most }
    }),
})
