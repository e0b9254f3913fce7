// Recurrent networks and packed sequences against PyTorch's numbers; what the fixtures leave out.
#include "tests/nn/torch_fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using namespace rush::nn::utils::rnn;
using namespace rush_tests;

Tensor lengths_of(const std::vector<int64_t>& lengths) { return tensor(ArrayRef<int64_t>(lengths), kCPU); }

// Calls with the state (h, c).
auto with_state() {
  return [](auto& module, const Outputs& inputs) {
    return module.forward(inputs[0], std::tuple<Tensor, Tensor>(inputs[1], inputs[2]));
  };
}

// Packs the input, runs the module, pads the output again.
auto packed(std::vector<int64_t> lengths, bool batch_first, bool enforce_sorted) {
  return [=](auto& module, const Outputs& inputs) {
    const PackedSequence sequence = pack_padded_sequence(inputs[0], lengths_of(lengths), batch_first, enforce_sorted);
    const auto [output, last] = [&] {
      if constexpr (requires { module.forward_with_packed_input(sequence, inputs[1]); }) {
        return module.forward_with_packed_input(sequence, inputs.size() > 1 ? inputs[1] : Tensor());
      } else {
        return module.forward_with_packed_input(sequence, std::tuple<Tensor, Tensor>(inputs[1], inputs[2]));
      }
    }();
    return std::tuple(std::get<0>(pad_packed_sequence(output, batch_first, 0.5)), last);
  };
}

template <class Options>
Options all_kinds(Options options) {
  return options.num_layers(2).bidirectional(true).batch_first(true);
}

// The cases of make_recurrent_fixtures.py.
const FixtureCases kRecurrentFixtures = {
    {"RNN", [](auto&) { return RNN(3, 2); }},
    {"RNN relu", [](auto&) { return RNN(RNNOptions(3, 4).nonlinearity(kReLU).bias(false)); }},
    {"RNN of all kinds", [](auto&) { return RNN(all_kinds(RNNOptions(3, 2))); }},
    {"GRU", [](auto&) { return GRU(3, 2); }},
    {"GRU of all kinds", [](auto&) { return GRU(all_kinds(GRUOptions(3, 2))); }},
    {"GRU unbatched", [](auto&) { return GRU(GRUOptions(3, 2).bias(false)); }},
    {"LSTM with a state", [](auto&) { return Subject(LSTM(3, 2), with_state()); }},
    {"LSTM projected", [](auto&) { return Subject(LSTM(all_kinds(LSTMOptions(3, 4).proj_size(2))), with_state()); }},
    {"RNNCell", [](auto&) { return RNNCell(RNNCellOptions(3, 2).nonlinearity(kReLU)); }},
    {"GRUCell", [](auto&) { return GRUCell(3, 2); }},
    {"GRUCell unbatched", [](auto&) { return GRUCell(GRUCellOptions(3, 2).bias(false)); }},
    {"LSTMCell with a state", [](auto&) { return Subject(LSTMCell(3, 2), with_state()); }},
    {"RNN packed",
     [](auto&) {
       return Subject(RNN(3, 2), packed({4, 2, 1}, false, true));
     }},
    {"GRU packed",
     [](auto&) {
       return Subject(GRU(GRUOptions(3, 2).num_layers(2).bidirectional(true)), packed({2, 4, 3}, true, false));
     }},
    {"LSTM packed",
     [](auto&) {
       return Subject(LSTM(LSTMOptions(3, 3).num_layers(2).bidirectional(true).proj_size(2)),
                      packed({1, 2, 4}, true, false));
     }},
};

TEST_CASE("recurrent networks have PyTorch's parameters, outputs and gradients") {
  check_fixtures("nn/recurrent.json", kRecurrentFixtures);
}

TEST_CASE("a recurrent network's clone computes the same, and shares nothing") {
  check_clones("nn/recurrent.json", kRecurrentFixtures);
}

TEST_CASE("recurrent networks print as libtorch's do") {
  CHECK(printed(RNN(3, 2)) ==
        "rush::nn::RNN(input_size=3, hidden_size=2, num_layers=1, bias=true, batch_first=false, dropout=0, "
        "bidirectional=false)");
  CHECK(printed(LSTM(LSTMOptions(3, 4).proj_size(2))) ==
        "rush::nn::LSTM(input_size=3, hidden_size=4, num_layers=1, bias=true, batch_first=false, dropout=0, "
        "bidirectional=false, proj_size=2)");
  CHECK(printed(RNNCell(RNNCellOptions(3, 2).bias(false).nonlinearity(kReLU))) ==
        "rush::nn::RNNCell(3, 2, bias=false, nonlinearity=kReLU)");
  CHECK(printed(GRUCell(3, 2)) == "rush::nn::GRUCell(3, 2)");
}

TEST_CASE("recurrent networks start uniform within 1 / sqrt(hidden size), drop between layers, run in a Sequential") {
  manual_seed(0);
  GRU gru(GRUOptions(3, 16).num_layers(2).dropout(0.5));
  for (const Tensor& weight : gru->all_weights()) {
    CHECK(weight.abs().max().item<double>() <= 0.25);
    CHECK(weight.abs().max().item<double>() > 0.2);
  }
  const Tensor x = randn({4, 2, 3});
  CHECK(!std::get<0>(gru(x)).equal(std::get<0>(gru(x))));
  gru->eval();
  CHECK(std::get<0>(gru(x)).equal(std::get<0>(gru(x))));
  Sequential net(Linear(3, 3), GRU(3, 2));
  CHECK(std::get<0>(net->forward<std::tuple<Tensor, Tensor>>(x)).sizes() == IntArrayRef({4, 2, 2}));
}

TEST_CASE("recurrent networks check what they get") {
  CHECK_THROWS_AS(RNN(0, 2), ValueError);
  CHECK_THROWS_AS(GRU(GRUOptions(3, 2).num_layers(0)), ValueError);
  CHECK_THROWS_AS(GRU(GRUOptions(3, 2).dropout(1.5)), ValueError);
  CHECK_THROWS_AS(LSTM(LSTMOptions(3, 2).proj_size(2)), ValueError);
  CHECK_THROWS_AS(GRUCell(3, -1), ValueError);
  RNN rnn(3, 2);
  CHECK_THROWS_AS(rnn(ones({4, 2, 2})), ValueError);
  CHECK_THROWS_AS(rnn(ones({0, 2, 3})), ValueError);
  CHECK_THROWS_AS(rnn(ones({4, 2, 3}), ones({1, 3, 2})), ValueError);
  CHECK_THROWS_AS(LSTM(3, 2)(ones({4, 2, 3}), std::tuple(ones({1, 2, 2}), Tensor())), ValueError);
  CHECK_THROWS_AS(GRUCell(3, 2)(ones({4, 3}), ones({3, 2})), ValueError);
  CHECK_THROWS_AS(rnn->forward_with_packed_input(PackedSequence(ones({3, 3}), lengths_of({1, 2}))), ValueError);
  CHECK_THROWS_AS(rnn->forward_with_packed_input(PackedSequence(ones({4, 3}), lengths_of({2, 1}))), Error);
}

TEST_CASE("packing keeps what belongs to a sequence, padding puts it back") {
  const Tensor x = arange(1, 25).view({3, 4, 2});
  const PackedSequence sorted = pack_padded_sequence(x, lengths_of({4, 2, 1}), /*batch_first=*/true);
  CHECK(sorted.batch_sizes().equal(lengths_of({3, 2, 1, 1})));
  CHECK(sorted.data().select(1, 0).equal(tensor({1, 9, 17, 3, 11, 5, 7})));
  CHECK(!sorted.sorted_indices().defined());

  const PackedSequence unsorted = pack_padded_sequence(x, lengths_of({1, 4, 2}), true, /*enforce_sorted=*/false);
  CHECK(unsorted.batch_sizes().equal(lengths_of({3, 2, 1, 1})));
  CHECK(unsorted.sorted_indices().equal(tensor({1, 2, 0})));
  CHECK(unsorted.unsorted_indices().equal(tensor({2, 0, 1})));
  CHECK(unsorted.data().select(1, 0).equal(tensor({9, 17, 1, 11, 19, 13, 15})));
  const auto [padded, lengths] = pad_packed_sequence(unsorted, true, -1, 5);
  CHECK(lengths.equal(lengths_of({1, 4, 2})));
  CHECK(padded.sizes() == IntArrayRef({3, 5, 2}));
  CHECK(padded.select(2, 0).equal(tensor({1, -1, -1, -1, -1, 9, 11, 13, 15, -1, 17, 19, -1, -1, -1}).view({3, 5})));
  CHECK(unsorted.to(kFloat64).data().scalar_type() == kFloat64);
}

TEST_CASE("sequences are padded on either side, packed, and taken out again") {
  const std::vector<Tensor> sequences = {tensor({1}), tensor({2, 3, 4}), tensor({5, 6})};
  CHECK(pad_sequence(sequences, true).equal(tensor({1, 0, 0, 2, 3, 4, 5, 6, 0}).view({3, 3})));
  CHECK(pad_sequence(sequences, false, 9, "left").equal(tensor({9, 2, 9, 9, 3, 5, 1, 4, 6}).view({3, 3})));
  CHECK(pack_sequence(sequences, false).data().equal(tensor({2, 5, 1, 3, 6, 4})));
  const std::vector<Tensor> again = unpad_sequence(pad_sequence(sequences), lengths_of({1, 3, 2}));
  for (size_t i = 0; i < 3; ++i) CHECK(again[i].equal(sequences[i]));
}

TEST_CASE("packing and padding check what they get") {
  const Tensor x = ones({4, 2, 3});
  CHECK_THROWS_WITH_AS(pack_padded_sequence(x, lengths_of({1, 4})), doctest::Contains("pass enforce_sorted=false"),
                       ValueError);
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{}, {4}, {4, 0}, {5, 1}, {4, -1}}) {
    CHECK_THROWS_AS(pack_padded_sequence(x, lengths_of(bad)), ValueError);
  }
  const PackedSequence packed = pack_padded_sequence(x, lengths_of({4, 1}));
  CHECK_THROWS_AS(pad_packed_sequence(packed, false, 0, 3), ValueError);
  CHECK_THROWS_AS(PackedSequence(x, ones({2})), ValueError);
  CHECK_THROWS_AS(pad_sequence({}), ValueError);
  CHECK_THROWS_AS(pad_sequence({ones({2, 3}), ones({2, 4})}), ValueError);
  CHECK_THROWS_AS(pad_sequence({ones(2)}, false, 0, "both"), ValueError);
  CHECK_THROWS_AS(pack_sequence({ones(1), ones(2)}), ValueError);
  CHECK_THROWS_AS(invert_permutation(lengths_of({0, 2})), ValueError);
  CHECK_THROWS_AS(unpad_sequence(x, lengths_of({1})), ValueError);
}

}  // namespace
