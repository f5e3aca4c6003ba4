import { useState } from 'react'
import { formatSpan } from '../../domain/format.ts'
import type { Operator } from '../../domain/operator.ts'
import type { PersonRole } from '../../domain/permissions.ts'
import { type Risk, risks } from '../../domain/tool.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { CheckField, ReasonField, SelectField, TextArea, TextField, toOptions } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Confirm, Heading, Nothing } from '../page-frame.tsx'
import { rolesOfPeople } from '../permissions.ts'
import { pickSearch, usePlace } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, useNow } from '../time.ts'

type Draft = ReturnType<typeof toDraft>

function toDraft(person: Operator | null) {
  return {
    name: person?.name ?? '',
    role: person?.role ?? ('approver' as PersonRole),
    maxRisk: person?.maxRisk ?? ('high' as Risk),
    // "No type" and "every type" are opposites, so neither may be an empty field.
    allTypes: !person?.incidentTypes,
    types: person?.incidentTypes?.join(' ') ?? '',
    rights: person?.rights.join('\n') ?? '',
    slack: person?.slackUserId ?? '',
    pagerduty: person?.pagerdutyUserId ?? '',
    disabled: Boolean(person?.disabledAt),
    reason: '',
  }
}

function toRequest({ role, maxRisk, allTypes, types, rights, slack, pagerduty, disabled, reason }: Draft) {
  return {
    role,
    maxRisk,
    incidentTypes: allTypes ? null : types.split(/[\s,]+/).filter(Boolean),
    rights: rights.split('\n').filter((each) => each.trim()),
    disabled,
    reason,
    slackUserId: slack.trim() || null,
    pagerdutyUserId: pagerduty.trim() || null,
  }
}

type Props = { button: string; person: Operator | null; isSelf: boolean }

/**
 * Creates a person, or changes a person's rights, with a reason. The complete change is made at
 * once.
 */
function PersonForm({ button, person, isSelf }: Props) {
  const [draft, setDraft] = useState(() => toDraft(person))
  const save = async () => {
    await ask(`/operators/${encodeURIComponent(draft.name.trim())}`, {
      method: 'PUT',
      // Refuses a name that is taken, because the request would otherwise change the person who has
      // it.
      ifNoneMatch: person ? undefined : '*',
      body: toRequest(draft),
    })
    await readAgain(['people'])
  }
  const fields = {
    id: `person-${person?.id ?? 'new'}`,
    draft,
    change: (part: Partial<Draft>) => setDraft({ ...draft, ...part }),
  }
  return (
    <Confirm
      button={button}
      label={person ? inertText(person.name) : ''}
      title={person ? `Permissions of ${inertText(person.name)}` : 'Add a user'}
      // Begins with the present rights of the person, not with what was typed before and not saved.
      onOpen={() => setDraft(toDraft(person))}
      run={save}
    >
      {!person && <NameField {...fields} />}
      <AuthorityFields {...fields} isRoleGiven={Boolean(person?.issuer)} isSelf={isSelf} />
      <DoorFields {...fields} isSelf={isSelf} />
      <ReasonField
        id={`${fields.id}-reason`}
        label="Reason (recorded in the audit log)"
        value={draft.reason}
        onChange={(reason) => fields.change({ reason })}
      />
    </Confirm>
  )
}

type FieldsProps = { id: string; draft: Draft; change(part: Partial<Draft>): void }

function NameField({ id, draft, change }: FieldsProps) {
  return (
    <TextField
      id={`${id}-name`}
      label="Name: one word, shown in the log"
      required
      pattern="[A-Za-z0-9][\w.@+\-]{0,63}"
      value={draft.name}
      onChange={(name) => change({ name })}
    />
  )
}

/** Asks for the rights of the person. `isRoleGiven`: the role comes from a provider. */
function AuthorityFields(props: FieldsProps & { isRoleGiven: boolean; isSelf: boolean }) {
  const { id, draft, change, isRoleGiven, isSelf } = props
  return (
    <>
      <SelectField
        label="Role"
        value={draft.role}
        options={toOptions(rolesOfPeople)}
        disabled={isRoleGiven || isSelf}
        onChange={(role) => change({ role })}
      >
        {isRoleGiven && <span className="small soft">set by the groups at the identity provider</span>}
        {isSelf && <span className="small soft">only another admin can change your role</span>}
      </SelectField>
      <SelectField
        label="Decides about risks up to"
        value={draft.maxRisk}
        options={toOptions(risks)}
        onChange={(maxRisk) => change({ maxRisk })}
      />
      <CheckField checked={draft.allTypes} onChange={(allTypes) => change({ allTypes })}>
        In incidents of all types
      </CheckField>
      <TextField
        id={`${id}-types`}
        label="Incident types (empty: none)"
        className="mono"
        placeholder="disk_pressure replication_lag"
        disabled={draft.allTypes}
        value={draft.types}
        onChange={(types) => change({ types })}
      />
      <TextArea
        id={`${id}-rights`}
        label="Further rights, one per line: risk, resources, types, end"
        className="mono"
        rows={3}
        placeholder="critical database:orders-* until:2026-12-06"
        value={draft.rights}
        onChange={(rights) => change({ rights })}
      />
    </>
  )
}

/** Asks how the person may sign in. */
function DoorFields({ id, draft, change, isSelf }: FieldsProps & { isSelf: boolean }) {
  return (
    <>
      <TextField
        id={`${id}-slack`}
        label="Member id at Slack (empty: cannot decide in Slack)"
        className="mono"
        placeholder="U012AB3CD"
        value={draft.slack}
        onChange={(slack) => change({ slack })}
      />
      <TextField
        id={`${id}-pagerduty`}
        label="User id at PagerDuty (empty: an acknowledgement in PagerDuty is noted, but does not take the incident)"
        className="mono"
        placeholder="PLH1HKV"
        value={draft.pagerduty}
        onChange={(pagerduty) => change({ pagerduty })}
      />
      <CheckField checked={draft.disabled} disabled={isSelf} onChange={(disabled) => change({ disabled })}>
        Disabled: cannot sign in with any token or browser
      </CheckField>
    </>
  )
}

/** Lists people: the rights of each, when they were last seen, and how to change them. */
export function PeoplePage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['cursor'], { limit: '50' })
  const people = useAsk<ListPage<Operator>>(['people', search], `/operators?${search}`)
  const { data: session } = useSession()
  const now = useNow()
  return (
    <>
      <Heading title={title} />
      <div className="stack">
        <DataTable
          query={people}
          what="users"
          place={place}
          directions={['← First', 'More →']}
          above={
            <div className="row">
              <PersonForm button="Add a user" person={null} isSelf={false} />
            </div>
          }
          caption="Users, by name"
          columns={columnsAt(now, session?.name ?? '')}
          toKey={({ id }) => id}
          empty={<Nothing title="No users.">Add a user, then create a token for this user.</Nothing>}
        />
      </div>
    </>
  )
}

function columnsAt(now: number, self: string): Column<Operator>[] {
  const formatSeen = ({ lastSeenAt }: Operator) =>
    lastSeenAt ? `${formatSpan(now - Date.parse(lastSeenAt))} ago` : 'never'
  return [
    {
      head: 'Name',
      className: 'wraps',
      cell: (person) => <PersonName person={person} isSelf={person.name === self} seen={formatSeen(person)} />,
    },
    {
      head: 'Role',
      cell: ({ role, disabledAt }) => (
        <>
          {role}
          {disabledAt && (
            <div className="small tone-broken strong" title={`since ${formatMoment(disabledAt)}`}>
              disabled
            </div>
          )}
        </>
      ),
    },
    { head: 'Decides about risks up to', className: 'wide', cell: ({ maxRisk }) => maxRisk },
    {
      head: 'In incidents of type',
      className: 'wide mono wraps',
      cell: (person) => <Inert text={formatTypes(person)} />,
    },
    {
      head: 'Last seen',
      className: 'wide nowrap',
      hint: ({ lastSeenAt }) => (lastSeenAt ? formatMoment(lastSeenAt) : undefined),
      cell: formatSeen,
    },
    {
      head: '',
      className: 'num',
      cell: (person) => <PersonForm button="Change" person={person} isSelf={person.name === self} />,
    },
  ]
}

function PersonName({ person, isSelf, seen }: { person: Operator; isSelf: boolean; seen: string }) {
  const { name, issuer, maxRisk, rights } = person
  return (
    <>
      <Inert as="strong" text={name} />
      {isSelf && <span className="soft"> you</span>}
      {issuer && (
        <div className="small soft">
          role from <Inert text={issuer} />
        </div>
      )}
      <div className="under small soft">
        up to {maxRisk}, types: <Inert text={formatTypes(person)} />; seen {seen}
      </div>
      {rights.map((each) => (
        <Inert key={each} as="div" className="small mono wraps" text={each} />
      ))}
    </>
  )
}

function formatTypes({ incidentTypes }: Operator): string {
  return incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'
}
