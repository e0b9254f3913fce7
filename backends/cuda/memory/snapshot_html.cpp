#include <algorithm>
#include <map>

#include "backends/cuda/memory/memory.h"
#include "backends/cuda/memory/snapshot.h"
#include "core/io/atomic_file.h"
#include "core/str.h"

namespace rush::cuda {

namespace {

constexpr const char* kHead = R"(<!doctype html><meta charset="utf-8"><title>CUDA memory</title>
<style>body{font:14px sans-serif;margin:2em}svg{border:1px solid #ccc;width:100%;height:240px}
.segment{display:flex;height:18px;margin:2px 0;background:#eee}.segment div{border-right:1px solid #fff}
.used{background:#4a7}.pending{background:#db5}.free{background:#ddd}#stack{white-space:pre;font:12px monospace}</style>
<h1>CUDA memory</h1><p>Move over the picture or a block to see what it is and where it was allocated.</p>
<div id="all"></div><div id="stack"></div><script>const devices=)";

// Allocated bytes over time as steps, then every segment with its blocks to scale.
constexpr const char* kScript = R"(;
const all=document.getElementById('all'),stack=document.getElementById('stack');
const MiB=n=>(n/1048576).toFixed(2)+' MiB';
const element=(tag,parent,text)=>{const e=document.createElement(tag);if(text)e.textContent=text;parent.append(e);return e};
for(const d of devices){
  element('h2',all,'cuda:'+d.device);
  let used=0,peak=1;const steps=[];
  for(const e of d.trace){
    if(e.a==='alloc')used+=e.s;else if(e.a==='free_completed')used-=e.s;else continue;
    steps.push([used,e]);
  }
  const base=Math.min(0,...steps.map(s=>s[0]));for(const s of steps){s[0]-=base;peak=Math.max(peak,s[0])}
  if(steps.length){
    element('p',all,steps.length+' events; at most '+MiB(peak)+' allocated since recording began');
    const svg=document.createElementNS('http://www.w3.org/2000/svg','svg');
    svg.setAttribute('viewBox','0 0 1000 240');svg.setAttribute('preserveAspectRatio','none');
    const line=document.createElementNS(svg.namespaceURI,'path');
    const x=i=>1000*i/steps.length,y=b=>238-230*b/peak;let path='M0 238';
    steps.forEach((s,i)=>path+='L'+x(i)+' '+y(s[0])+'L'+x(i+1)+' '+y(s[0]));
    line.setAttribute('d',path+'L1000 238Z');line.setAttribute('fill','#4a7');svg.append(line);all.append(svg);
    svg.onmousemove=m=>{const s=steps[Math.min(steps.length-1,Math.floor(m.offsetX/svg.clientWidth*steps.length))];
      stack.textContent=s[1].a+' '+MiB(s[1].s)+', '+MiB(s[0])+' in all\n'+(d.stacks[s[1].f]||[]).join('\n')};
  }
  for(const g of d.segments){
    element('div',all,(g.small?'small':'large')+' segment of '+MiB(g.total)+', '+MiB(g.allocated)+' allocated, stream '+
      g.stream+(g.group?', private pool '+g.group:'')+(g.expandable?', expandable':''));
    const row=element('div',all);row.className='segment';
    for(const b of g.blocks){const e=element('div',row);e.className=b.k;e.style.width=100*b.s/g.total+'%';
      e.onmousemove=()=>stack.textContent=b.k+' block of '+MiB(b.s)+' ('+b.r+' bytes requested)\n'+
        (d.stacks[b.f]||[]).join('\n')}
  }
}
</script>
)";

void append_quoted(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '<') {
      out += "\\u003c";  // or a name could end the script
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  out += '"';
}

// Each stack once; others refer to it by number.
class Stacks {
 public:
  size_t number_of(const std::shared_ptr<const MemoryTrace>& trace) {
    if (!trace) return 0;
    const auto [at, added] = numbers_.try_emplace(trace.get(), traces_.size() + 1);
    if (added) traces_.push_back(trace);
    return at->second;
  }
  std::string as_json() const {
    std::string out = "[[]";
    for (const auto& trace : traces_) {
      out += ",[";
      const char* separator = "";
      for (const std::string& frame : trace->frames()) {
        out += separator;
        append_quoted(out, frame);
        separator = ",";
      }
      out += ']';
    }
    return out + ']';
  }

 private:
  std::map<const MemoryTrace*, size_t> numbers_;
  std::vector<std::shared_ptr<const MemoryTrace>> traces_;
};

const char* kind_of(TraceEntry::Action action) {
  if (action == TraceEntry::Action::Alloc) return "alloc";
  return action == TraceEntry::Action::FreeCompleted ? "free_completed" : "other";
}

std::string device_as_json(const DeviceSnapshot& snapshot) {
  Stacks stacks;
  std::string out = str("{\"device\":", snapshot.device, ",\"trace\":[");
  const char* separator = "";
  for (const TraceEntry& entry : snapshot.trace) {
    out += str(separator, "{\"a\":\"", kind_of(entry.action), "\",\"s\":", entry.size,
               ",\"f\":", stacks.number_of(entry.trace), "}");
    separator = ",";
  }
  out += "],\"segments\":[";
  separator = "";
  for (const SegmentInfo& segment : snapshot.segments) {
    out += str(separator, "{\"total\":", segment.total_size, ",\"allocated\":", segment.allocated_size,
               ",\"small\":", segment.small, ",\"expandable\":", segment.expandable, ",\"group\":", segment.group,
               ",\"stream\":", reinterpret_cast<uint64_t>(segment.stream), ",\"blocks\":[");
    separator = "";
    for (const BlockInfo& block : segment.blocks) {
      out += str(separator, "{\"k\":\"", block.allocated ? "used" : block.active ? "pending" : "free",
                 "\",\"s\":", block.size, ",\"r\":", block.requested, ",\"f\":", stacks.number_of(block.trace), "}");
      separator = ",";
    }
    out += "]}";
    separator = ",";
  }
  return out + "],\"stacks\":" + stacks.as_json() + "}";
}

}  // namespace

std::string snapshot_as_html(const std::vector<DeviceSnapshot>& snapshots) {
  std::string out = std::string(kHead) + "[";
  for (size_t i = 0; i < snapshots.size(); ++i) out += (i ? "," : "") + device_as_json(snapshots[i]);
  return out + "]" + kScript;
}

void dump_memory_snapshot(const std::string& path) {
  io::write_file_atomically(path, snapshot_as_pickle(memory_snapshot()));
}

void dump_memory_html(const std::string& path) {
  io::write_file_atomically(path, snapshot_as_html(memory_snapshot()));
}

}  // namespace rush::cuda
