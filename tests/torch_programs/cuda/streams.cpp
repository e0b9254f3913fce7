// Streams, guards, events and graphs of a GPU under libtorch's names. Without one the test is skipped.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <iostream>
#include <vector>

static void sum_on(at::cuda::CUDAStream stream, const torch::Tensor& x) {
  at::cuda::CUDAStreamGuard guard(stream);
  std::cout << (at::cuda::getCurrentCUDAStream() == stream) << x.sum().item<float>() << "\n";
}

// What is captured runs at each replay, on what its tensors then hold.
static void replay(const torch::Tensor& x) {
  at::cuda::CUDAGraph graph;
  torch::Tensor doubled;
  torch::cuda::synchronize();
  {
    const at::cuda::CUDAStreamGuard guard(at::cuda::getStreamFromPool());
    graph.capture_begin();
    doubled = x * 2;
    graph.capture_end();
  }
  x.fill_(3);
  graph.replay();
  std::cout << doubled.sum().item<float>() << "\n";
}

int main() {
  if (!torch::cuda::is_available()) return 77;
  const torch::Tensor x = torch::ones({2, 2}, torch::device(torch::kCUDA));
  const at::cuda::CUDAStream usual = at::cuda::getDefaultCUDAStream(), pooled = at::cuda::getStreamFromPool();
  sum_on(usual, x);
  sum_on(pooled, x);
  replay(x.clone());
  c10::cuda::setCurrentCUDAStream(pooled);
  at::cuda::CUDAEvent event;
  event.record(pooled);
  event.block(usual);
  event.synchronize();
  c10::cuda::setCurrentCUDAStream(usual);
  {
    const at::cuda::CUDAMultiStreamGuard guard(std::vector<at::cuda::CUDAStream>{pooled});
    std::cout << (c10::cuda::getCurrentCUDAStream() == pooled) << event.query() << "\n";
  }
  const at::cuda::OptionalCUDAGuard nothing;
  const c10::cuda::OptionalCUDAGuard device(x.device());
  std::cout << (c10::cuda::getCurrentCUDAStream() == usual) << static_cast<int>(c10::cuda::current_device()) << "\n";
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::device_synchronize();
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  try {
    C10_CUDA_CHECK(cudaSetDevice(1000));
  } catch (const c10::Error&) {
    std::cout << "no such device\n";
  }
  return 0;
}
