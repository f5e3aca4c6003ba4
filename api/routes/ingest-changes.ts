import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { every } from 'hono/combine'
import { type TakenChange, takeChanges } from '../../db/inventory/changes.ts'
import { readSettings } from '../../db/settings.ts'
import { takenChanges } from '../../domain/change.ts'
import { resourceKey } from '../../domain/registry.ts'
import { type ChangeSender, senderOf } from '../../ingest/changes/senders.ts'
import type { ApiDeps, Context, Env, Middleware } from '../deps.ts'
import { requireMediaType } from '../http/body.ts'
import type { Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { path } from './changes.ts'

const route = createRoute({
  method: 'post',
  path: '/ingest/change',
  tags: ['ingest'],
  summary: 'Receives changes: deployments and configuration changes',
  description: [
    'A delivery with the header `X-GitHub-Event` or `X-Gitlab-Event` is read in the format of that sender. Any other delivery is `generic`: one object, or a list of 100 at most.',
    'A repeat is stored once, so no `Idempotency-Key` is needed.',
    'If `change.github_secret` or `change.gitlab_token` is set, each delivery of that sender must carry its proof (`X-Hub-Signature-256`, `X-Gitlab-Token`), and needs no API token.',
    'Permission: `ingest`.',
  ].join('\n\n'),
  security: [{ bearer: [] }],
  'x-permission': 'ingest',
  request: {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: z.looseObject({}),
          example: {
            title: 'nginx 1.29 on web-1',
            at: '2026-11-21T01:41:40Z',
            resources: ['node:web-1'],
            author: 'anna',
            revision: '8f3c2d1',
          },
        },
      },
    },
  },
  responses: {
    202: {
      description:
        'The changes are stored. The response lists each resource of each change, and how it was found. `ignored` is the reason why a delivery has no change.',
      content: {
        'application/json': {
          schema: takenChanges,
          example: {
            changes: [
              {
                id: 'chg_01kam3x0q2v8d5t7w9y1b3c5e7',
                outcome: 'stored' as const,
                resource: 'node:web-1',
                why: 'it names node:web-1',
              },
            ],
            ignored: null,
          },
        },
      },
    },
    400: { description: 'The request contains no valid change: do not send it again.' },
    401: {
      description:
        'The token is missing, unknown, expired or revoked; `NOT_PROVEN`: the signature or secret token is wrong.',
    },
    403: { description: 'The role lacks the permission.' },
    413: { description: 'More than 1 MiB.' },
    415: { description: 'Not JSON.' },
    422: { description: 'A parameter of the query is given more than once.' },
    503: {
      description: 'The database cannot be reached, or too many requests had a wrong secret: send the request again.',
    },
  },
})

/**
 * Routes for senders with a secret and without a token. They run before token authentication, and
 * pass on every other request.
 */
export function provenChangeRoutes(app: OpenAPIHono<Env>, deps: ApiDeps): void {
  const takeProven: Middleware = async (c, next) => {
    const sender = c.req.method === 'POST' ? readSender(c) : null
    const secret = sender?.secretSetting ? await readSecret(deps, sender.secretSetting) : null
    if (!sender || secret === null) return await next()
    const bytes = new Uint8Array(await c.req.arrayBuffer())
    if (!sender.isProven(secret, (name) => c.req.header(name), bytes)) {
      deps.log.warn(
        { sender: sender.name },
        'a request with a change has no valid signature or secret token of its sender',
      )
      const flood = await afterFailure(deps.db, c)
      if (flood) throw flood
      const detail = `The secret set for ${sender.name} does not match this delivery. Set the same secret in Nightshift and at the sender.`
      throw new Problem(401, 'NOT_PROVEN', detail)
    }
    return await take(deps, c, sender)
  }
  app.use(path, limitBody, takeProven)
}

async function readSecret({ db }: ApiDeps, setting: string): Promise<string | null> {
  return (await readSettings(db)).value<string | null>(setting)
}

export function ingestChangeRoutes(router: Router, deps: ApiDeps): void {
  // Passes the bytes unchanged to the parser of the sender. The schema above only documents them.
  router.openAPIRegistry.registerPath(route)
  router.post('/ingest/change', every(permit('ingest')), (c) => take(deps, c, readSender(c)))
}

function readSender(c: Context): ChangeSender {
  const sender = senderOf((name) => c.req.header(name))
  if (sender) return sender
  throw new Problem(
    400,
    'UNPARSABLE',
    'The headers name two senders, X-GitHub-Event and X-Gitlab-Event. Send only one of these headers.',
  )
}

async function take(deps: ApiDeps, c: Context, sender: ChangeSender): Promise<Response> {
  requireMediaType(c, ['application/json'])
  const { eventHeader, keyHeader } = sender
  const delivery = {
    bytes: new Uint8Array(await c.req.arrayBuffer()),
    event: (eventHeader !== null && c.req.header(eventHeader)) || null,
    key: (keyHeader !== null && c.req.header(keyHeader)) || null,
  }
  const parsed = sender.parse(delivery, new Date().toISOString())
  if (!parsed.ok)
    throw new Problem(400, 'UNPARSABLE', `The request is not a change of ${sender.name}: ${parsed.reason}.`)
  const taken = await takeChanges(deps.db, parsed.changes)
  return c.json({ changes: taken.flatMap(toAnswer), ignored: parsed.ignored }, 202)
}

function toAnswer({ outcome, about }: TakenChange): z.input<typeof takenChanges>['changes'] {
  return about.map(({ id, resource, why }) => ({ id, outcome, resource: resource && resourceKey(resource), why }))
}
