import { z } from 'zod'
import { webhookTemplates } from './notification.ts'
import { type DestinationKind, destinationKinds, type Route, route } from './route.ts'

/**
 * Destinations that people set up: each kind, its options, and what is shown. Secrets go in and are
 * never shown.
 */

export const destinationName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'takes small letters, digits and dashes, 40 at most, as night-shift')

/** What stands in the outbox for one of them. */
export const destinationPrefix = 'to.'

const oneLine = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'takes one line, without control characters')

/** An address that a credential may be in. */
const postUrl = z.string().max(2_000).refine(isPostUrl, 'takes an address, as https://hooks.example.com/nightshift')

function isPostUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}

const httpsUrl = postUrl.refine(
  (text) => isSafeAddress(URL.parse(text)),
  'takes an https address (or http of this machine), as https://example.com/path',
)

function isSafeAddress(url: URL | null): boolean {
  return url?.protocol === 'https:' || (url !== null && /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url.hostname))
}

const mailAddress = z
  .string()
  .max(254)
  .regex(
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/,
    'takes an address, as ops@example.com',
  )

const pem = z
  .string()
  .max(64_000)
  .regex(
    /^\s*-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\s*$/,
    'takes certificates in PEM, which begin with -----BEGIN CERTIFICATE-----',
  )

const integrationKey = z
  .string()
  .regex(
    /^[A-Za-z0-9]{32}$/,
    'takes the 32 letters and digits of an integration key (Events API V2), as R0123456789ABCDEF0123456789ABCDE',
  )

const host = z
  .string()
  .max(253)
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/, 'takes a host, as smtp.example.com')

/** Standard Webhooks. */
const signingSecret = z
  .string()
  .regex(
    /^whsec_[A-Za-z0-9+/]{32,400}={0,2}$/,
    'takes whsec_ and at least 24 bytes in base64, as "openssl rand -base64 32" prints them',
  )

const sharedSecret = z
  .string()
  .regex(/^[\x21-\x7e]{16,200}$/, 'takes the secret that PagerDuty showed once: 16 to 200 visible ASCII characters')

/** PagerDuty's own hosts, by region. */
const eventsHosts: Record<string, string> = {
  us: 'https://events.pagerduty.com/v2/enqueue',
  eu: 'https://events.eu.pagerduty.com/v2/enqueue',
}

/** PagerDuty's own hosts by region, or another address that speaks the same. */
const eventsAddress = z
  .string()
  .max(2_000)
  .refine(
    (text) => Object.hasOwn(eventsHosts, text) || (isPostUrl(text) && isSafeAddress(URL.parse(text))),
    'takes us, eu, or an https address, as us',
  )

const webhookOptions = z.strictObject({ template: z.enum(webhookTemplates).default('generic') })
const pagerdutyOptions = z.strictObject({ events: eventsAddress.default('us') })
const teamsOptions = z.strictObject({})
const emailOptions = z
  .strictObject({
    host,
    port: z.number().int().min(1).max(65_535).default(587),
    /** `starttls` and `tls` refuse to go on without; `none` takes no user. */
    tls: z.enum(['starttls', 'tls', 'none']).default('starttls'),
    user: oneLine(200).min(1).nullable().default(null),
    from: mailAddress,
    to: z.array(mailAddress).min(1, 'takes at least one address, as ops@example.com').max(50),
    /** Authorities to believe, instead of those of the system. */
    ca: pem.nullable().default(null),
  })
  .refine(({ tls, user }) => tls !== 'none' || user === null, {
    path: ['tls'],
    message: 'would send the password in the clear: set starttls or tls, or leave user out',
  })

/** Left out: as it was. Null: none any more. */
const secret = (schema: z.ZodString) => schema.nullish()

const webhookSecrets = z.strictObject({ url: secret(postUrl), secret: secret(signingSecret) })
const pagerdutySecrets = z.strictObject({ integrationKey: secret(integrationKey), webhookSecret: secret(sharedSecret) })
const teamsSecrets = z.strictObject({ url: secret(httpsUrl) })
const emailSecrets = z.strictObject({ password: secret(oneLine(500).min(1)) })

const common = { route: route.prefault({}), enabled: z.boolean().default(true) }

/** What somebody puts. */
export const destinationPut = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('webhook'),
    options: webhookOptions.prefault({}),
    secrets: webhookSecrets.default({}),
    ...common,
  }),
  z.strictObject({
    kind: z.literal('pagerduty'),
    options: pagerdutyOptions.prefault({}),
    secrets: pagerdutySecrets.default({}),
    ...common,
  }),
  z.strictObject({
    kind: z.literal('teams'),
    options: teamsOptions.prefault({}),
    secrets: teamsSecrets.default({}),
    ...common,
  }),
  z.strictObject({ kind: z.literal('email'), options: emailOptions, secrets: emailSecrets.default({}), ...common }),
])
export type DestinationPut = z.infer<typeof destinationPut>

type OptionsOf = {
  webhook: z.infer<typeof webhookOptions>
  pagerduty: z.infer<typeof pagerdutyOptions>
  teams: z.infer<typeof teamsOptions>
  email: z.infer<typeof emailOptions>
}
export type MailServer = OptionsOf['email']

const secretNames = ['url', 'secret', 'integrationKey', 'webhookSecret', 'password'] as const
type SecretName = (typeof secretNames)[number]
export type DestinationSecrets = Partial<Record<SecretName, string>>

/** What it is and where it leads. */
type DestinationPlace = {
  [K in DestinationKind]: { kind: K; options: OptionsOf[K]; secrets: DestinationSecrets }
}[DestinationKind]

/** As it is stored. */
export type Destination = DestinationPlace & {
  name: string
  route: Route
  enabled: boolean
  createdBy: string
  createdAt: string
  updatedAt: string
}

/** What a kind cannot do without. */
export const requiredSecret: Record<DestinationKind, SecretName | null> = {
  webhook: 'url',
  pagerduty: 'integrationKey',
  teams: 'url',
  email: null,
}

/** As the API lists it. */
export const listedDestination = z.object({
  name: destinationName,
  kind: z.enum(destinationKinds),
  options: z.record(z.string(), z.unknown()),
  /** Which of its secrets are set. */
  secrets: z.array(z.enum(secretNames)),
  /** Where it leads, as far as no credential is in that. */
  address: z.string(),
  route,
  enabled: z.boolean(),
  createdBy: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type ListedDestination = z.infer<typeof listedDestination>

/** One attempt to deliver to it. */
export const destinationDelivery = z.object({
  id: z.number().int(),
  messageId: z.string(),
  incidentId: z.string(),
  trigger: z.string(),
  title: z.string(),
  attempt: z.number().int(),
  status: z.enum(['pending', 'sending', 'sent', 'failed', 'dropped']),
  responseStatus: z.number().int().nullable(),
  response: z.string().nullable(),
  createdAt: z.string(),
  finishedAt: z.string().nullable(),
})
export type DestinationDelivery = z.infer<typeof destinationDelivery>

/** Where events for PagerDuty are posted. */
export function toEventsUrl({ events }: OptionsOf['pagerduty']): string {
  return (Object.hasOwn(eventsHosts, events) && eventsHosts[events]) || events
}

/** Whether this version could have stored it: another version, or a hand past the API, may have. */
export function isReadable({ kind, options, secrets, route, enabled }: Destination): boolean {
  return destinationPut.safeParse({ kind, options, secrets, route, enabled }).success
}

/** The receiver whose limits count for all that goes there; it may hold a credential. */
export function addressOf(place: DestinationPlace): string {
  switch (place.kind) {
    case 'webhook':
    case 'teams':
      return place.secrets.url ?? ''
    case 'pagerduty':
      return `${toEventsUrl(place.options)} ${place.secrets.integrationKey}`
    case 'email': {
      const { host, port, from, to } = place.options
      return `${host}:${port} ${from} ${to.join()}`
    }
  }
}

/** Where it leads, as people are shown it. */
export function shownAddressOf(place: DestinationPlace): string {
  switch (place.kind) {
    case 'webhook':
    case 'teams':
      return `${URL.parse(place.secrets.url ?? '')?.origin ?? 'no address'}/…`
    case 'pagerduty':
      return URL.parse(toEventsUrl(place.options))?.origin ?? ''
    case 'email':
      return `${place.options.to.join(', ')} by ${place.options.host}:${place.options.port}`
  }
}

/** Where its secrets are sent: one that was given for a place is not sent to another. */
export function secretPlaceOf(place: Pick<DestinationPlace, 'kind'> & { options: object }): string {
  const { host, port, tls, ca, events } = place.options as Record<string, unknown>
  return JSON.stringify([place.kind, host, port, tls, ca, events])
}
