import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { toList, toText, toWords } from '../../domain/say.ts'
import { cleanse } from '../../safety/redact.ts'
import { defineSourceTool, fitSummary, SourceError } from '../kind.ts'
import type { AskCluster } from './connect.ts'
import { toIso } from './fields.ts'
import { type Rollout, readRollouts, sayFirst } from './rollouts.ts'
import { findSubject, nameField, nameOfWorkload, namespaceField, sourceField } from './subject.ts'

/** The tool that reads the revisions of a workload, and what each revision changed. */

const maxChanges = 12

const showRollout = ({ revision, madeMs, changed, isTakenUpAgain, pods, set }: Rollout) => ({
  revision,
  ...(isTakenUpAgain ? { takenUpAgain: `an older template, first used ${toIso(madeMs)}` } : { at: toIso(madeMs) }),
  ...(set && { replicaSet: set }),
  ...(pods && { ready: `${pods.ready} of ${pods.wanted}` }),
  changed: changed === null ? sayFirst(revision) : changed.slice(0, maxChanges),
  ...(changed && changed.length > maxChanges && { moreChanges: changed.length - maxChanges }),
})

export const rolloutHistory = defineSourceTool({
  name: 'rollout_history',
  isRare: true,
  description:
    'Which revision of a workload of Kubernetes changed what, newest first, and which ConfigMaps it reads changed.',
  input: z.strictObject({
    source: sourceField,
    namespace: namespaceField,
    name: nameField.describe('of the workload, or of a pod of it'),
  }),
  judge: () => ({ ok: true as const }),
  labels: ({ namespace, name, source }) => ({ namespace, pod: name, ...(source && { cluster: source }) }),
  say({ workload, revisions }) {
    const [newest] = toList(revisions)
    if (!newest) return `${toText(workload)} keeps no revisions`
    const changed = toWords(newest.changed)
    const what =
      changed.length > 0
        ? `changed ${changed.slice(0, 2).join('; ')}`
        : toText(newest.changed) || 'changed nothing in its pods'
    return `${toText(workload)}: revision ${toText(newest.revision)}${newest.at ? ` at ${toText(newest.at)}` : ''}${changed.length > 0 ? '' : ':'} ${what}`
  },
  async read(ask: AskCluster, { namespace, name }, { nowMs }) {
    const cluster = await ask({ view: true })
    const { workload, namesakes } = findSubject(cluster, namespace, name, nowMs)
    if (!workload) throw new SourceError('REJECTED', `${cluster.name}: no workload makes the pod ${name}`)
    const { rollouts, changedBy, configMaps, bounds } = cleanse(await readRollouts(ask, cluster.view, workload))
    const head = {
      workload: nameOfWorkload(workload),
      ...(namesakes.length > 0 && { alsoCalledSo: namesakes }),
      ...(workload.isPaused && { paused: true }),
      ...(changedBy && { lastChanged: `${toIso(changedBy.atMs)} by ${changedBy.manager}` }),
      ...(bounds.length > 0 && { bounds }),
      ...(configMaps.length > 0 && {
        configMaps: configMaps.map(({ name, changedMs, manager, keys }) =>
          changedMs === null
            ? `${name}: ${manager || 'time of change not known'}`
            : `${name}: ${formatCount(keys, 'key')}, changed ${toIso(changedMs)} by ${manager}`,
        ),
      }),
    }
    return {
      summary: fitSummary(rollouts.map(showRollout), (kept, omitted) => ({
        ...head,
        revisions: kept,
        ...(omitted > 0 && { moreRevisions: omitted }),
      })),
      whole: [JSON.stringify(head), ...rollouts.map((each) => JSON.stringify(each))].join('\n'),
      isEmpty: false,
    }
  },
})
