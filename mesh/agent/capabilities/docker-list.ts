import { z } from 'zod'
import { redact } from '../../../safety/redact.ts'
import { stripText } from '../../../safety/strip.ts'
import type { DeviceCapability } from '../capability.ts'
import { engineId, word } from '../container.ts'
import { ask, type Engine, lacksEngine } from '../engine.ts'
import { answered } from '../refused.ts'

const args = z.strictObject({ all: z.boolean().default(false) })

const port = z.looseObject({
  IP: word(64).optional(),
  PrivatePort: z.number(),
  PublicPort: z.number().optional(),
  Type: word(10),
})
const listed = z.array(
  z.looseObject({
    Id: engineId,
    Names: z.array(word()).default([]),
    Image: word(),
    Command: z.string().default(''),
    // Seconds since 1970, as far as a date of four digits goes.
    Created: z.number().int().min(0).max(253_402_300_799),
    State: word(40),
    Status: word(),
    Ports: z.array(port).nullish(),
  }),
)

const most = 500
const mostPorts = 50

/** Containers that run, with `all` the stopped ones too: `{ containers: [{ id, name, image, command, state, status, created, ports }] }`. */
export const dockerList = (engine: Engine): DeviceCapability<z.infer<typeof args>> => ({
  capability: 'docker.container.list',
  args,
  lacks: () => lacksEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: ({ all }, { signal }) =>
    answered(signal, async () => {
      const found = await ask(engine, { method: 'GET', path: `/containers/json?all=${all}` }, listed, signal)
      const containers = found.slice(0, most).map((one) => ({
        id: one.Id.slice(0, 12),
        name: one.Names[0]?.replace(/^\//, '') ?? null,
        image: one.Image,
        command: redact(stripText(one.Command, { keepNewlines: false }))
          .slice(0, 300)
          .toWellFormed(),
        state: one.State,
        status: one.Status,
        created: new Date(one.Created * 1_000).toISOString(),
        ports: (one.Ports ?? [])
          .slice(0, mostPorts)
          .map(
            ({ IP, PrivatePort, PublicPort, Type }) =>
              `${PublicPort === undefined ? '' : `${IP ?? ''}:${PublicPort}->`}${PrivatePort}/${Type}`,
          ),
      }))
      return { ok: true, result: { containers, total: found.length }, truncated: found.length > most }
    }),
})
