import { z } from 'zod'
import { webhookTemplates } from './notification.ts'
import { type DestinationKind, destinationKinds, type Route, route } from './route.ts'

/**
 * Destinations of notifications that people configure: kinds, options, and the fields that are
 * shown. A secret is accepted in a request and never shown.
 */

export const destinationName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'must be small letters, digits and dashes, 40 at most, such as night-shift')

/** The prefix that the name of a configured destination has in the outbox. */
export const destinationPrefix = 'to.'

const oneLine = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line, without control characters')

/** An HTTP address whose path or query may contain a credential. */
const postUrl = z
  .string()
  .max(2_000)
  .refine(isPostUrl, 'must be an address, such as https://hooks.example.com/nightshift')

function isPostUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}

const httpsUrl = postUrl.refine(
  (text) => isSafeAddress(URL.parse(text)),
  'must be an https address (or http on this machine), such as https://example.com/path',
)

function isSafeAddress(url: URL | null): boolean {
  return url?.protocol === 'https:' || (url !== null && /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url.hostname))
}

const mailAddress = z
  .string()
  .max(254)
  .regex(
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/,
    'must be an address, such as ops@example.com',
  )

const pem = z
  .string()
  .max(64_000)
  .regex(
    /^\s*-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\s*$/,
    'must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----',
  )

const integrationKey = z
  .string()
  .regex(
    /^[A-Za-z0-9]{32}$/,
    'must be the 32 letters and digits of an integration key (Events API V2), such as R0123456789ABCDEF0123456789ABCDE',
  )

const host = z
  .string()
  .max(253)
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/, 'must be a host, such as smtp.example.com')

/** A signing secret in the form of Standard Webhooks. */
const signingSecret = z
  .string()
  .regex(
    /^whsec_[A-Za-z0-9+/]{32,400}={0,2}$/,
    'must be whsec_ and at least 24 bytes in base64, as "openssl rand -base64 32" prints them',
  )

const sharedSecret = z
  .string()
  .regex(/^[\x21-\x7e]{16,200}$/, 'must be the secret that PagerDuty showed once: 16 to 200 visible ASCII characters')

/** PagerDuty's own addresses, by region. */
const eventsHosts: Record<string, string> = {
  us: 'https://events.pagerduty.com/v2/enqueue',
  eu: 'https://events.eu.pagerduty.com/v2/enqueue',
}

/** A region of PagerDuty, or the address of a service with PagerDuty's protocol. */
const eventsAddress = z
  .string()
  .max(2_000)
  .refine(
    (text) => Object.hasOwn(eventsHosts, text) || (isPostUrl(text) && isSafeAddress(URL.parse(text))),
    'must be us, eu, or an https address',
  )

const webhookOptions = z.strictObject({ template: z.enum(webhookTemplates).default('generic') })
const pagerdutyOptions = z.strictObject({ events: eventsAddress.default('us') })
const teamsOptions = z.strictObject({})
const emailOptions = z
  .strictObject({
    host,
    port: z.number().int().min(1).max(65_535).default(587),
    /**
     * `starttls` and `tls` refuse to continue without encryption. With `none` no user is allowed,
     * so that no password is sent.
     */
    tls: z.enum(['starttls', 'tls', 'none']).default('starttls'),
    user: oneLine(200).min(1).nullable().default(null),
    from: mailAddress,
    to: z.array(mailAddress).min(1, 'must have at least one address, such as ops@example.com').max(50),
    /** Certificate authorities to trust instead of the system's authorities. */
    ca: pem.nullable().default(null),
  })
  .refine(({ tls, user }) => tls !== 'none' || user === null, {
    path: ['tls'],
    message: 'would send the password in the clear: set starttls or tls, or leave user out',
  })

/**
 * A secret in a request. If the field is absent, the stored secret stays; null removes the stored
 * secret.
 */
const secret = (schema: z.ZodString) => schema.nullish()

const webhookSecrets = z.strictObject({ url: secret(postUrl), secret: secret(signingSecret) })
const pagerdutySecrets = z.strictObject({ integrationKey: secret(integrationKey), webhookSecret: secret(sharedSecret) })
const teamsSecrets = z.strictObject({ url: secret(httpsUrl) })
const emailSecrets = z.strictObject({ password: secret(oneLine(500).min(1)) })

const common = { route: route.prefault({}), enabled: z.boolean().default(true) }

/** The request body that creates or changes a destination. */
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

/** The kind of a destination, with the options and secrets that contain its address. */
type DestinationPlace = {
  [K in DestinationKind]: { kind: K; options: OptionsOf[K]; secrets: DestinationSecrets }
}[DestinationKind]

export type Destination = DestinationPlace & {
  name: string
  route: Route
  enabled: boolean
  createdBy: string
  createdAt: string
  updatedAt: string
}

/** The secret that each kind requires. */
export const requiredSecret: Record<DestinationKind, SecretName | null> = {
  webhook: 'url',
  pagerduty: 'integrationKey',
  teams: 'url',
  email: null,
}

/** A destination as the API lists it. */
export const listedDestination = z.object({
  name: destinationName,
  kind: z.enum(destinationKinds),
  options: z.record(z.string(), z.unknown()),
  /** Names of the secrets that are set for the destination. */
  secrets: z.array(z.enum(secretNames)),
  /** The address, without a credential. */
  address: z.string(),
  route,
  enabled: z.boolean(),
  createdBy: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type ListedDestination = z.infer<typeof listedDestination>

/** One attempt to deliver a notification to a destination. */
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

/** Returns the address for PagerDuty's events. */
export function toEventsUrl({ events }: OptionsOf['pagerduty']): string {
  return (Object.hasOwn(eventsHosts, events) && eventsHosts[events]) || events
}

/**
 * Whether this version could have stored the destination. False if another version or a manual SQL
 * statement stored what this version does not accept.
 */
export function isReadable({ kind, options, secrets, route, enabled }: Destination): boolean {
  return destinationPut.safeParse({ kind, options, secrets, route, enabled }).success
}

/** Identifies the receiver to which a rate limit applies. The text may contain a credential. */
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

/** Returns the address of a destination as people see it, without a credential. */
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

/**
 * Identifies the place to which secrets are sent. A secret that was given for one place is never
 * sent to another place.
 */
export function secretPlaceOf(place: Pick<DestinationPlace, 'kind'> & { options: object }): string {
  const { host, port, tls, ca, events } = place.options as Record<string, unknown>
  return JSON.stringify([place.kind, host, port, tls, ca, events])
}
