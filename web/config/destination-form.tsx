import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { ListedDestination } from '../../domain/destination.ts'
import type { Severity } from '../../domain/incident.ts'
import type { Trigger } from '../../domain/notification.ts'
import type { DestinationKind } from '../../domain/route.ts'
import { ask, readAgain } from '../api.ts'
import { CheckField, Facet, SelectField, TextArea, TextField, toOptions } from '../fields.tsx'
import { Failed, PageForm } from '../page-frame.tsx'

export const destinationKinds = [
  ['email', 'E-mail'],
  ['pagerduty', 'PagerDuty'],
  ['teams', 'Microsoft Teams'],
  ['webhook', 'Webhook'],
] as const satisfies readonly (readonly [DestinationKind, string])[]

const severities: readonly Severity[] = ['critical', 'warning', 'info']

const triggerWords = {
  critical: 'critical opened',
  escalated: 'escalated',
  approval: 'question',
  resolved: 'resolved',
  watch: 'still fires',
  reopened: 'reopened',
  reminder: 'reminder',
  quiet: 'quiet',
  owner: 'yours again',
  taken: 'taken',
  closed: 'cancelled or expected',
  digest: 'digest',
  spared: 'no page was needed',
  morning: 'the morning report',
  hand_over: 'a hand-over',
  follow_up: 'a follow-up',
  notice: 'notice',
  late: '',
  undelivered: '',
  duty: '',
} satisfies Record<Trigger, string>
/** Leaves out triggers that are about the destinations themselves, which have a fixed target. */
const triggers = (Object.entries(triggerWords) as [Trigger, string][]).filter(([, words]) => words !== '')

type Draft = {
  name: string
  kind: DestinationKind
  options: Record<string, string>
  secrets: Record<string, string>
  severities: readonly Severity[]
  triggers: readonly Trigger[]
  types: string
  from: string
  to: string
  zone: string
  wakes: 'kind' | 'yes' | 'no'
  enabled: boolean
}

const wakesWords = [
  ['kind', 'default: PagerDuty and generic webhooks only'],
  ['yes', 'yes'],
  ['no', 'no'],
] as const satisfies [Draft['wakes'], string][]

function toDraft(destination: ListedDestination | null): Draft {
  const { route } = destination ?? {}
  const options = Object.entries(destination?.options ?? {}).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : String(value ?? ''),
  ])
  return {
    name: destination?.name ?? '',
    kind: destination?.kind ?? 'email',
    options: Object.fromEntries(options),
    secrets: {},
    severities: route?.severities ?? [],
    triggers: route?.triggers ?? [],
    types: route?.types?.join(', ') ?? '',
    from: route?.hours?.from ?? '',
    to: route?.hours?.to ?? '',
    zone: route?.hours?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    wakes: typeof route?.wakes === 'boolean' ? (route.wakes ? 'yes' : 'no') : 'kind',
    enabled: destination?.enabled ?? true,
  }
}

/** Builds the request. An empty field for a secret keeps the stored secret. */
function toRequest({ kind, options, secrets, enabled, ...route }: Draft) {
  return {
    kind,
    options: optionsOf[kind](options),
    secrets: Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== '')),
    route: {
      severities: route.severities.length > 0 ? route.severities : null,
      types: listOf(route.types),
      triggers: route.triggers.length > 0 ? route.triggers : null,
      hours: route.from || route.to ? { from: route.from, to: route.to, zone: route.zone } : null,
      wakes: route.wakes === 'kind' ? null : route.wakes === 'yes',
    },
    enabled,
  }
}

function listOf(text: string): string[] | null {
  const words = text.split(/[\s,]+/).filter(Boolean)
  return words.length > 0 ? words : null
}

const optionsOf: Record<DestinationKind, (options: Record<string, string>) => object> = {
  webhook: ({ template }) => ({ template: template || 'generic' }),
  pagerduty: ({ events }) => ({ events: events?.trim() || 'us' }),
  teams: () => ({}),
  email: ({ host = '', port, tls, user, from = '', to = '', ca }) => ({
    host: host.trim(),
    port: Number(port || 587),
    tls: tls || 'starttls',
    user: user?.trim() || null,
    from: from.trim(),
    to: listOf(to) ?? [],
    ca: ca?.trim() || null,
  }),
}

type FormProps = { destination: ListedDestination | null; refused: string | null; onSaved(): void }

/** Creates or changes a destination. The server checks each value, and describes a valid one. */
export function DestinationForm({ destination, refused, onSaved }: FormProps) {
  const [draft, setDraft] = useState(() => toDraft(destination))
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part })
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      ask(`/destinations/${encodeURIComponent(draft.name.trim())}`, { method: 'PUT', body: toRequest(draft) }),
    onSuccess: async () => {
      await readAgain(['destinations'])
      onSaved()
    },
  })
  const fields = { draft, change, known: destination?.secrets ?? [], id: `destination-${destination?.name ?? 'new'}` }
  return (
    <PageForm className="stack tight" onSubmit={() => mutate()}>
      <fieldset className="stack tight" disabled={refused !== null || isPending}>
        <legend className="strong">{destination ? 'Change it' : 'A new destination'}</legend>
        {refused && <p>{refused}</p>}
        {!destination && (
          <>
            <TextField
              id={`${fields.id}-name`}
              label="Name"
              required
              placeholder="night-shift"
              value={draft.name}
              onChange={(name) => change({ name })}
            />
            <SelectField
              label="Kind"
              value={draft.kind}
              options={destinationKinds}
              onChange={(kind) => change({ kind, options: {}, secrets: {} })}
            />
          </>
        )}
        <PlaceFields {...fields} />
        <RouteFields {...fields} />
        <SelectField
          label="Does a page to this destination wake somebody?"
          value={draft.wakes}
          options={wakesWords}
          onChange={(wakes) => change({ wakes })}
        />
        <CheckField checked={draft.enabled} onChange={(enabled) => change({ enabled })}>
          Send messages to this destination
        </CheckField>
        {error !== null && <Failed error={error} />}
        <div className="row">
          <button type="submit">Save</button>
        </div>
      </fieldset>
    </PageForm>
  )
}

type FieldsProps = {
  id: string
  draft: Draft
  /** Names of the stored secrets. */
  known: readonly string[]
  change(part: Partial<Draft>): void
}

function PlaceFields(props: FieldsProps) {
  switch (props.draft.kind) {
    case 'email':
      return <MailFields {...props} />
    case 'pagerduty':
      return (
        <>
          <SecretField {...props} name="integrationKey" label="Integration key of a service (Events API V2)" />
          <OptionField {...props} name="events" label="Region: us, eu, or an address" placeholder="us" />
          <SecretField
            {...props}
            name="webhookSecret"
            label="Secret of PagerDuty’s webhook to Nightshift (may be empty)"
          />
          <p className="soft small">
            Webhook of PagerDuty (V3):{' '}
            <code>{`${location.origin}/api/v1/ingest/pagerduty/${props.draft.name || 'NAME'}`}</code>
          </p>
        </>
      )
    case 'teams':
      return <SecretField {...props} name="url" label="Address of the workflow's webhook" />
    case 'webhook':
      return (
        <>
          <SecretField {...props} name="url" label="Address to post to" />
          <SelectField
            label="Shape"
            value={(props.draft.options.template as 'generic' | 'slack' | undefined) ?? 'generic'}
            options={toOptions(['generic', 'slack'])}
            onChange={(template) => props.change({ options: { ...props.draft.options, template } })}
          />
          <SecretField {...props} name="secret" label="Signing secret, whsec_… (may be empty)" />
        </>
      )
  }
}

function MailFields(props: FieldsProps) {
  const { draft, change, id } = props
  return (
    <>
      <OptionField {...props} name="host" label="Mail server" placeholder="smtp.example.com" />
      <OptionField {...props} name="port" label="Port" placeholder="587" />
      <SelectField
        label="TLS"
        value={(draft.options.tls as 'starttls' | 'tls' | 'none' | undefined) ?? 'starttls'}
        options={[
          ['starttls', 'STARTTLS'],
          ['tls', 'TLS from the start'],
          ['none', 'none (without a user)'],
        ]}
        onChange={(tls) => change({ options: { ...draft.options, tls } })}
      />
      <OptionField {...props} name="user" label="User (may be empty)" />
      <SecretField {...props} name="password" label="Password" />
      <OptionField {...props} name="from" label="From" placeholder="nightshift@example.com" />
      <OptionField {...props} name="to" label="To, joined by commas" placeholder="ops@example.com" />
      <details>
        <summary>Certificate authorities to trust instead of the system's</summary>
        <TextArea
          id={`${id}-ca`}
          label="Certificates in PEM"
          className="mono"
          rows={4}
          value={draft.options.ca ?? ''}
          onChange={(ca) => change({ options: { ...draft.options, ca } })}
        />
      </details>
    </>
  )
}

type OneFieldProps = FieldsProps & { name: string; label: string; placeholder?: string }

function OptionField({ id, draft, change, name, label, placeholder }: OneFieldProps) {
  return (
    <TextField
      id={`${id}-${name}`}
      label={label}
      placeholder={placeholder}
      value={draft.options[name] ?? ''}
      onChange={(value) => change({ options: { ...draft.options, [name]: value } })}
    />
  )
}

function SecretField({ id, draft, change, known, name, label }: OneFieldProps) {
  return (
    <TextField
      id={`${id}-${name}`}
      type="password"
      autoComplete="off"
      label={label}
      placeholder={known.includes(name) ? 'already set: leave empty to keep it' : ''}
      value={draft.secrets[name] ?? ''}
      onChange={(value) => change({ secrets: { ...draft.secrets, [name]: value } })}
    />
  )
}

function RouteFields({ id, draft, change }: FieldsProps) {
  const toggle = <Word extends string>(all: readonly Word[], word: Word) =>
    all.includes(word) ? all.filter((each) => each !== word) : [...all, word]
  return (
    <fieldset className="stack tight">
      <legend className="strong">Which messages this destination gets</legend>
      <span className="soft small">Severities (if you choose none: all)</span>
      <Facet
        legend="Severities"
        options={severities.map((word) => [word, word] as const)}
        chosen={draft.severities}
        onToggle={(word) => change({ severities: toggle(draft.severities, word) })}
      />
      <span className="soft small">Kinds of messages (if you choose none: all except "taken")</span>
      <Facet
        legend="Triggers"
        options={triggers}
        chosen={draft.triggers}
        onToggle={(word) => change({ triggers: toggle(draft.triggers, word) })}
      />
      <TextField
        id={`${id}-types`}
        label="Types of incidents, joined by commas (empty: all)"
        className="mono"
        placeholder="disk_*, replication_lag"
        value={draft.types}
        onChange={(types) => change({ types })}
      />
      <div className="row">
        <TextField
          {...hour}
          id={`${id}-from-hour`}
          label="From"
          value={draft.from}
          onChange={(from) => change({ from })}
        />
        <TextField {...hour} id={`${id}-to-hour`} label="to" value={draft.to} onChange={(to) => change({ to })} />
        <TextField
          id={`${id}-zone`}
          label="in"
          placeholder="Europe/Oslo"
          value={draft.zone}
          onChange={(zone) => change({ zone })}
        />
      </div>
    </fieldset>
  )
}

/** A time as a text, because the browser's own field may use a 12-hour clock. */
const hour = { size: 5, pattern: '([01][0-9]|2[0-3]):[0-5][0-9]', placeholder: '22:00' }
