import type { Grammars } from '../grammar.ts'
import { clusters } from './clusters.ts'
import { containers } from './containers.ts'
import { each, paths, plain, spell, verbs } from './spell.ts'

const kube = spell({ text: '-n --namespace --context', flag: '-A --all-namespaces' })
const output = spell({ name: '-o --output' })

/** What deploys to Kubernetes, what meshes and guards it, and its other clients. */
export const deployers: Grammars = {
  argocd: {
    // --server goes elsewhere, --local and --refresh make it work; logs and resources may hold what an application says.
    manual: 'argocd, Argo CD 2.9',
    options: spell({ name: '-o --output -p --project', text: '-l --selector', flag: '--client' }),
    commands: {
      ...paths(
        'app list|get|history, cluster list, proj list, repo list, appset list, version',
        plain('argocd, Argo CD 2.9'),
      ),
    },
  },
  flux: {
    manual: 'flux, Flux 2.2',
    options: { ...kube, ...output },
    commands: {
      ...paths(
        `get all|kustomizations|kustomization|ks|helmreleases|helmrelease|hr|alerts|receivers, get sources all|git|helm|oci|chart|bucket, get images all|policy|repository, check, version,
         stats, events, tree kustomization|ks`,
        plain('flux, Flux 2.2', spell({ text: '--status-selector --kind --since --for -l --label-selector' })),
      ),
      logs: plain('flux, Flux 2.2', spell({ text: '--level --kind --name --since', number: '--tail' })),
    },
  },
  velero: {
    manual: 'velero, 1.12',
    options: { ...kube, ...output },
    commands: paths(
      'backup|schedule get|describe, get backups|backup|restores|schedules|schedule|backup-locations, version',
      plain('velero, 1.12'),
    ),
  },
  istioctl: {
    // proxy-config secret, all and bootstrap show keys and environments; analyze and describe read what is there.
    manual: 'istioctl, Istio 1.20',
    options: { ...kube, ...output },
    commands: {
      ...paths(
        'proxy-status|ps, version, proxy-config|pc cluster|clusters|listener|listeners|route|routes|endpoint|endpoints',
        plain(
          'istioctl, Istio 1.20',
          spell({ text: '--fqdn --port --direction --subset --type --address', flag: '--short' }),
        ),
      ),
      analyze: plain('istioctl, Istio 1.20', {}, { operands: {} }),
    },
  },
  linkerd: verbs('linkerd, 2.14', 'check, version, viz stat|edges|routes|check', {
    ...kube,
    ...spell({ flag: '--proxy --short --client', text: '-t --time-window --to --from' }),
  }),
  cilium: verbs(
    'cilium, 1.14',
    'status, endpoint list|get|health, service list|get, node list, bpf lb|ct|nat|policy list, identity list, map list, ip list, version, clustermesh status',
    { ...output, ...spell({ flag: '--verbose --brief --all-health --all-nodes' }) },
  ),
  hubble: {
    manual: 'hubble, 0.12',
    commands: {
      ...paths('status, version, list nodes|namespaces', plain('hubble, 0.12')),
      observe: plain(
        'hubble, 0.12',
        spell({
          number: '--last --first',
          text: '--verdict --since --until --namespace -n --pod --type --protocol --to-pod --from-pod --label --port',
          name: '-o --output',
        }),
        {
          operands: {},
          requires: ['--last', '--first', '--until'],
        },
      ),
    },
  },
  calicoctl: verbs(
    'calicoctl, 3.26',
    'node status, get nodes|node|ippool|ippools|bgppeer|bgpconfiguration|felixconfiguration|workloadendpoint|networkpolicy|globalnetworkpolicy, ipam show, version',
    { ...output, ...spell({ flag: '--show-blocks --show-borrowed -A --all-namespaces', text: '-n --namespace' }) },
  ),
  cmctl: verbs('cmctl, cert-manager 1.13', 'status certificate, check api, version', kube),
  tkn: verbs('tkn, Tekton CLI 0.33', 'pipelinerun|taskrun|pipeline|task|pr|tr|p|t list|ls|describe|desc, version', {
    ...kube,
    ...spell({ number: '--limit' }),
  }),
  stern: {
    ...plain('stern, 1.28', {
      ...kube,
      ...spell({ text: '--since -c --container -l --selector', number: '--tail', flag: '--no-follow --timestamps' }),
    }),
    requires: ['--no-follow'],
  },
  talosctl: {
    manual: 'talosctl, Talos 1.6',
    options: spell({
      host: '-n --nodes -e --endpoints',
      name: '-o --output',
      text: '--wait-timeout',
      number: '--tail',
    }),
    commands: {
      ...paths(
        'version, dmesg, health, disks, stats, processes, memory, mounts, containers, netstat, etcd members|status, time',
        plain('talosctl, Talos 1.6'),
      ),
      // What follows a service's name may restart it.
      ...each('service services', { manual: 'talosctl, Talos 1.6', operands: { first: ['name'] } }),
      get: plain(
        'talosctl, Talos 1.6',
        {},
        {
          only: [
            {
              value: '',
              first:
                '^(members|nodename|addresses|routes|links|disks|services|machinestatus|etcdmembers|nodestatus|mounts|timestatus)$',
            },
          ],
          operands: { rest: 'name', min: 1 },
        },
      ),
      logs: plain('talosctl, Talos 1.6', {}, { operands: { first: ['name'], min: 1 } }),
    },
  },
  oc: {
    ...clusters.kubectl!,
    manual: 'oc, OpenShift CLI 4.14',
    commands: {
      ...clusters.kubectl!.commands,
      ...paths('status', plain('oc, 4.14')),
      // Clients of its sign-in, templates and builds are described with their secrets.
      describe: {
        ...clusters.kubectl!.commands!.describe!,
        refuses: [...clusters.kubectl!.commands!.describe!.refuses!, 'oauth', 'template', 'build', '^bc', 'identit'],
      },
      adm: { manual: 'oc, 4.14', commands: { top: clusters.kubectl!.commands!.top! } },
    },
  },
  kubeadm: verbs('kubeadm, 1.29', 'version, certs check-expiration', output),
  nerdctl: {
    ...containers.docker!,
    manual: 'nerdctl, 1.7',
    options: spell({ name: '-n --namespace', flag: '-v --version' }),
  },
}
